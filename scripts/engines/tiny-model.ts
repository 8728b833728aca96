// A Qwen3 of random weights for a real engine: real vocabulary, real chat template, two layers. It babbles, but it is a policy like
// any other: its tokens are sampled from what it reports. Ends its answers by itself after some 40 tokens on average, since one
// hidden dimension is kept constant and the end token's row of the output layer reads it.

import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { seededRandom } from '../../src/simulation/random.js'

export const SHAPE = {
  vocabulary: 151_936,
  hidden: 64,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headSize: 32,
  feedForward: 128,
  positions: 32_768,
} as const
/** `<|im_end|>`. */
export const END_TOKEN = 151_645
const OUTPUT = 'lm_head.weight'
/** From here on: tokens that control the template. The model never writes one, but for the end token. */
const FIRST_CONTROL_TOKEN = 151_643

export interface Tensor {
  /** Name in Hugging Face's layout. */
  readonly name: string
  /** Rows first. */
  readonly shape: readonly number[]
  values(): Float32Array
}

/** The weights, made anew at each call of `values`; the same for the same name. */
export function tensors(): readonly Tensor[] {
  const { vocabulary, hidden, layers, heads, keyValueHeads, headSize, feedForward } = SHAPE
  const list: Tensor[] = []
  const add = (name: string, shape: readonly number[], values: () => Float32Array) => list.push({ name, shape, values })
  const random = (name: string, shape: readonly number[], deviation: number) =>
    add(name, shape, () => noise(name, shape, deviation))
  const ones = (name: string, size: number) => add(name, [size], () => new Float32Array(size).fill(1))
  add('model.embed_tokens.weight', [vocabulary, hidden], () => {
    const rows = noise('model.embed_tokens.weight', [vocabulary, hidden], 1)
    for (let row = 0; row < vocabulary; row++) rows[row * hidden] = CONSTANT
    return rows
  })
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}`
    ones(`${at}.input_layernorm.weight`, hidden)
    random(`${at}.self_attn.q_proj.weight`, [heads * headSize, hidden], 0.1)
    random(`${at}.self_attn.k_proj.weight`, [keyValueHeads * headSize, hidden], 0.1)
    random(`${at}.self_attn.v_proj.weight`, [keyValueHeads * headSize, hidden], 0.1)
    ones(`${at}.self_attn.q_norm.weight`, headSize)
    ones(`${at}.self_attn.k_norm.weight`, headSize)
    add(`${at}.self_attn.o_proj.weight`, [hidden, heads * headSize], () => {
      const rows = noise(`${at}.self_attn.o_proj.weight`, [hidden, heads * headSize], 0.1)
      return rows.fill(0, 0, heads * headSize)
    })
    ones(`${at}.post_attention_layernorm.weight`, hidden)
    random(`${at}.mlp.gate_proj.weight`, [feedForward, hidden], 0.1)
    random(`${at}.mlp.up_proj.weight`, [feedForward, hidden], 0.1)
    add(`${at}.mlp.down_proj.weight`, [hidden, feedForward], () => {
      const rows = noise(`${at}.mlp.down_proj.weight`, [hidden, feedForward], 0.1)
      return rows.fill(0, 0, feedForward)
    })
  }
  ones('model.norm.weight', hidden)
  add(OUTPUT, [vocabulary, hidden], () => {
    const rows = noise(OUTPUT, [vocabulary, hidden], OUTPUT_DEVIATION)
    for (let row = 0; row < vocabulary; row++) rows[row * hidden] = 0
    rows.fill(0, FIRST_CONTROL_TOKEN * hidden)
    for (let row = FIRST_CONTROL_TOKEN; row < vocabulary; row++) rows[row * hidden] = NEVER
    rows[END_TOKEN * hidden] = END_WEIGHT
    return rows
  })
  return list
}

/** `list` with an output layer that never writes the tokens for which `isMute` holds. */
export function muted(list: readonly Tensor[], isMute: (id: number) => boolean): readonly Tensor[] {
  return list.map(tensor => ({
    ...tensor,
    values() {
      const rows = tensor.values()
      if (tensor.name !== OUTPUT) return rows
      for (let id = 0; id < SHAPE.vocabulary; id++) if (isMute(id)) rows[id * SHAPE.hidden] = NEVER
      return rows
    },
  }))
}

/** Value of hidden dimension 0, which no layer changes. */
const CONSTANT = 4
/** Logits of ordinary tokens spread by about 8 times this. */
const OUTPUT_DEVIATION = 0.4
/** As the weight of the constant: the token is not sampled in the life of the universe. */
const NEVER = -100
/** Makes the end token take about one place in 40. */
const END_WEIGHT = 4

/** Normally distributed, mean 0; pairs by Box and Muller's method. */
function noise(name: string, shape: readonly number[], deviation: number): Float32Array {
  const random = seededRandom(name)
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1))
  for (let index = 0; index < values.length; index += 2) {
    const radius = deviation * Math.sqrt(-2 * Math.log(1 - random()))
    const angle = 2 * Math.PI * random()
    values[index] = radius * Math.cos(angle)
    if (index + 1 < values.length) values[index + 1] = radius * Math.sin(angle)
  }
  return values
}

/** Writes the model folder as Hugging Face lays it out. One that is there already is left as it is. */
export function writeModelFolder(folder: string, tokenizerFolder: string): void {
  if (existsSync(folder)) return
  const unfinished = `${folder}.${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  for (const name of ['tokenizer.json', 'tokenizer_config.json'])
    copyFileSync(join(tokenizerFolder, name), join(unfinished, name))
  const { vocabulary, hidden, layers, heads, keyValueHeads, headSize, feedForward, positions } = SHAPE
  const config = {
    architectures: ['Qwen3ForCausalLM'],
    model_type: 'qwen3',
    vocab_size: vocabulary,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    head_dim: headSize,
    intermediate_size: feedForward,
    max_position_embeddings: positions,
    hidden_act: 'silu',
    rms_norm_eps: 1e-6,
    rope_theta: 1_000_000,
    tie_word_embeddings: false,
    attention_bias: false,
    attention_dropout: 0,
    use_sliding_window: false,
    bos_token_id: 151_643,
    eos_token_id: END_TOKEN,
    torch_dtype: 'float32',
  }
  writeFileSync(join(unfinished, 'config.json'), JSON.stringify(config, null, 2))
  // What Qwen3 ships: an engine applies it to requests that name no sampling of their own.
  const generation = { eos_token_id: [END_TOKEN, 151_643], temperature: 0.6, top_k: 20, top_p: 0.95, do_sample: true }
  writeFileSync(join(unfinished, 'generation_config.json'), JSON.stringify(generation, null, 2))
  writeSafetensors(join(unfinished, 'model.safetensors'), tensors())
  mkdirSync(dirname(folder), { recursive: true })
  renameSync(unfinished, folder)
}

/** Header length (8 bytes), JSON header, then the tensors' bytes one after the other. */
function writeSafetensors(path: string, list: readonly Tensor[]): void {
  let offset = 0
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } }
  for (const { name, shape } of list) {
    const bytes = 4 * shape.reduce((product, size) => product * size, 1)
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + bytes] }
    offset += bytes
  }
  const plain = Buffer.from(JSON.stringify(header))
  const text = Buffer.concat([plain, Buffer.alloc((8 - (plain.length % 8)) % 8, ' ')])
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const file = openSync(path, 'w')
  try {
    writeSync(file, length)
    writeSync(file, text)
    for (const tensor of list) {
      const values = tensor.values()
      writeSync(file, Buffer.from(values.buffer, values.byteOffset, values.byteLength))
    }
  } finally {
    closeSync(file)
  }
}
