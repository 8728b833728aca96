// JSON as Python reads and writes it: `json.dumps(json.loads(text), ensure_ascii=False)`, with ", " and ": ". Inference servers
// and chat templates print tool calls this way, so the same bytes must come out here: 1.0 stays 1.0, a long integer keeps its
// digits, and keys that look like numbers keep their order, which JavaScript's own objects change.

import { isObject } from '../domain/json.js'

/** `value` as json.dumps writes it. Numbers are printed as JavaScript prints them; use `redumpJson` where the text is known. */
export function dumpJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(dumpJson).join(', ')}]`
  if (isObject(value)) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}: ${dumpJson(member)}`).join(', ')}}`
  }
  return JSON.stringify(value) ?? 'null'
}

/** What Python prints after reading `text`. Throws SyntaxError when `text` is no JSON. */
export function redumpJson(text: string): string {
  const preserved = preserveJson()
  return preserved.restore(dumpJson(preserved.parse(text)))
}

/** Carries what JavaScript would lose through objects and a template, as marked strings. */
export interface PreservedJson {
  /** The value of `text`, with what JavaScript would print otherwise replaced by marks. Throws SyntaxError. */
  parse(text: string): unknown
  /** `printed` with the marks replaced by what Python prints in their place. */
  restore(printed: string): string
}

// Private-use characters that no tokenizer's training text holds.
const OPEN = '\uE0F0'
const CLOSE = '\uE0F1'
const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const MARK = /("?)\uE0F0([nk])(\d+)\uE0F1\1/g

export function preserveJson(): PreservedJson {
  const kept: string[] = []
  const keep = (kind: 'n' | 'k', printed: string): string => `"${OPEN}${kind}${kept.push(printed) - 1}${CLOSE}"`
  return {
    parse: text => {
      const plain: unknown = JSON.parse(text)
      const marked = text.replace(TOKEN, (token, colon: string | undefined) => {
        if (colon !== undefined) {
          const key = token.slice(1, token.lastIndexOf('"'))
          return /^\d+$/.test(key) ? keep('k', key) + colon : token
        }
        if (token.startsWith('"')) return token
        const printed = printNumber(token)
        return printed === String(Number(token)) ? token : keep('n', printed)
      })
      return marked === text ? plain : JSON.parse(marked)
    },
    restore: printed =>
      kept.length === 0
        ? printed
        : printed.replace(MARK, (mark, quote: string, kind: string, index: string) => {
            const text = kept[Number(index)]
            if (text === undefined) return mark
            return kind === 'k' ? quote + text + quote : text
          }),
  }
}

/** A JSON number as Python prints it: integers with all their digits, floats by `repr`. */
function printNumber(literal: string): string {
  if (!/[.eE]/.test(literal)) return literal === '-0' ? '0' : literal
  const value = Number(literal)
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  const sign = Object.is(value, -0) || value < 0 ? '-' : ''
  const [mantissa = '0', power = '0'] = Math.abs(value).toExponential().split('e')
  const exponent = Number(power)
  const digits = mantissa.replace('.', '')
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, '0')
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${size}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`
}
