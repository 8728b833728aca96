// The tiny Qwen3 of tiny-model.ts as one GGUF file (version 3, little-endian): metadata, vocabulary, merges and chat template, then
// the float32 weights under llama.cpp's names. One thing differs: a token that is no whole text of its own (half a character) is
// never written, since llama.cpp answers 500 where what was sampled is no UTF-8. A trained model hardly ever does that.

import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { END_TOKEN, muted, SHAPE, type Tensor, tensors } from './tiny-model.js'

const VERSION = 3
/** Bytes to which each tensor is aligned. */
const ALIGNMENT = 32
/** GGUF's numbers of the value types that are used here. */
const TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, list: 9 } as const
const FLOAT32_TENSOR = 0
/** llama.cpp's classes of tokens: text, control, written by the user's program, not in use. */
const TOKEN = { normal: 1, control: 3, own: 4, unused: 5 } as const

type Value =
  | { readonly type: 'u32' | 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'list'; readonly of: 'string'; readonly value: readonly string[] }
  | { readonly type: 'list'; readonly of: 'i32'; readonly value: readonly number[] }

/** The parts of Hugging Face's tokenizer.json that are read. */
interface TokenizerFile {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: readonly (readonly [string, string])[]
  }
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[]
}

/** Writes the model file. One that is there already is left as it is. */
export function writeGguf(path: string, tokenizerFolder: string): void {
  if (existsSync(path)) return
  mkdirSync(dirname(path), { recursive: true })
  const unfinished = `${path}.${process.pid}`
  const { tokens, kinds, merges } = vocabularyOf(tokenizerFolder)
  const list = muted(tensors(), id => kinds[id] === TOKEN.normal && !isWholeText(tokens[id] ?? ''))
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(VERSION),
    u64(list.length),
    ...metadata({ tokens, kinds, merges }, chatTemplate(tokenizerFolder)),
    ...tensorTable(list),
  ])
  const file = openSync(unfinished, 'w')
  try {
    writeSync(file, padded(head))
    for (const tensor of list) {
      const values = tensor.values()
      writeSync(file, padded(Buffer.from(values.buffer, values.byteOffset, values.byteLength)))
    }
  } finally {
    closeSync(file)
  }
  renameSync(unfinished, path)
}

/** Number of entries, then the entries. */
function metadata({ tokens, kinds, merges }: Vocabulary, template: string): readonly Buffer[] {
  const { layers, hidden, heads, keyValueHeads, headSize, feedForward, positions, vocabulary } = SHAPE
  const number = (value: number): Value => ({ type: 'u32', value })
  const entries: Readonly<Record<string, Value>> = {
    'general.architecture': { type: 'string', value: 'qwen3' },
    'general.name': { type: 'string', value: 'tiny' },
    'general.alignment': number(ALIGNMENT),
    'general.file_type': number(0),
    'qwen3.block_count': number(layers),
    'qwen3.context_length': number(positions),
    'qwen3.embedding_length': number(hidden),
    'qwen3.feed_forward_length': number(feedForward),
    'qwen3.attention.head_count': number(heads),
    'qwen3.attention.head_count_kv': number(keyValueHeads),
    'qwen3.attention.key_length': number(headSize),
    'qwen3.attention.value_length': number(headSize),
    'qwen3.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-6 },
    'qwen3.rope.freq_base': { type: 'f32', value: 1_000_000 },
    'qwen3.vocab_size': number(vocabulary),
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { type: 'list', of: 'string', value: tokens },
    'tokenizer.ggml.token_type': { type: 'list', of: 'i32', value: kinds },
    'tokenizer.ggml.merges': { type: 'list', of: 'string', value: merges },
    'tokenizer.ggml.eos_token_id': number(END_TOKEN),
    'tokenizer.ggml.padding_token_id': number(151_643),
    'tokenizer.ggml.add_bos_token': { type: 'bool', value: false },
    'tokenizer.chat_template': { type: 'string', value: template },
  }
  const names = Object.keys(entries)
  return [u64(names.length), ...Object.entries(entries).flatMap(([name, value]) => [string(name), typed(value)])]
}

interface Vocabulary {
  /** By id; bytes written as the printable characters that GPT-2's vocabulary uses for them. */
  readonly tokens: readonly string[]
  readonly kinds: readonly number[]
  readonly merges: readonly string[]
}

function vocabularyOf(folder: string): Vocabulary {
  // As Hugging Face lays it out.
  const { model, added_tokens: added } = JSON.parse(
    readFileSync(join(folder, 'tokenizer.json'), 'utf8'),
  ) as TokenizerFile
  const tokens = Array.from({ length: SHAPE.vocabulary }, (_, id) => `[PAD${id}]`)
  const kinds = new Array<number>(SHAPE.vocabulary).fill(TOKEN.unused)
  for (const [token, id] of Object.entries(model.vocab)) {
    tokens[id] = token
    kinds[id] = TOKEN.normal
  }
  for (const { id, content, special } of added) {
    tokens[id] = content
    kinds[id] = special ? TOKEN.control : TOKEN.own
  }
  return { tokens, kinds, merges: model.merges.map(pair => pair.join(' ')) }
}

/** Bytes that stand for themselves; the others, in order, are written from U+0100 on. */
const OWN_BYTES: readonly (readonly [number, number])[] = [
  [0x21, 0x7e],
  [0xa1, 0xac],
  [0xae, 0xff],
]
const isOwn = (byte: number): boolean => OWN_BYTES.some(([first, last]) => byte >= first && byte <= last)
const SHIFTED = Array.from({ length: 256 }, (_, byte) => byte).filter(byte => !isOwn(byte))
const utf8 = new TextDecoder('utf-8', { fatal: true })

function isWholeText(token: string): boolean {
  const bytes = [...token].map(character => {
    const code = character.charCodeAt(0)
    return code < 0x100 ? code : (SHIFTED[code - 0x100] ?? 0xff)
  })
  try {
    utf8.decode(Uint8Array.from(bytes))
    return true
  } catch {
    return false
  }
}

function chatTemplate(folder: string): string {
  const text = readFileSync(join(folder, 'tokenizer_config.json'), 'utf8')
  return (JSON.parse(text) as { readonly chat_template: string }).chat_template // Hugging Face's layout
}

function tensorTable(list: readonly Tensor[]): readonly Buffer[] {
  let offset = 0
  return list.map(({ name, shape }) => {
    const bytes = 4 * shape.reduce((product, size) => product * size, 1)
    const entry = Buffer.concat([
      string(ggufName(name)),
      u32(shape.length),
      // Fastest dimension first.
      ...[...shape].reverse().map(u64),
      u32(FLOAT32_TENSOR),
      u64(offset),
    ])
    offset += Math.ceil(bytes / ALIGNMENT) * ALIGNMENT
    return entry
  })
}

const PARTS: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
}
const WHOLE: Readonly<Record<string, string>> = {
  'model.embed_tokens.weight': 'token_embd.weight',
  'model.norm.weight': 'output_norm.weight',
  'lm_head.weight': 'output.weight',
}

/** llama.cpp's name of a tensor that Hugging Face calls `name`. */
function ggufName(name: string): string {
  const [, layer, part] = /^model\.layers\.(\d+)\.(.+)\.weight$/.exec(name) ?? []
  const found = layer === undefined ? WHOLE[name] : PARTS[part ?? ''] && `blk.${layer}.${PARTS[part ?? '']}.weight`
  if (found === undefined) throw new Error(`no GGUF name for the tensor ${name}`)
  return found
}

const typed = (value: Value): Buffer => Buffer.concat([u32(TYPES[value.type]), plain(value)])

function plain(value: Value): Buffer {
  switch (value.type) {
    case 'u32':
      return u32(value.value)
    case 'f32': {
      const bytes = Buffer.alloc(4)
      bytes.writeFloatLE(value.value)
      return bytes
    }
    case 'bool':
      return Buffer.from([value.value ? 1 : 0])
    case 'string':
      return string(value.value)
    case 'list': {
      const items = value.of === 'string' ? value.value.map(string) : value.value.map(u32)
      return Buffer.concat([u32(TYPES[value.of]), u64(items.length), ...items])
    }
  }
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

/** Length in bytes, then UTF-8. */
function string(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([u64(bytes.length), bytes])
}

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT)])
