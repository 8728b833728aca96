// Where the inference servers stand is the operator's business: what a harness is told of an error names no address. Sandboxed code reads
// those texts. Pure.

/** What stands in place of an address. */
const SERVER = 'the inference server'

/** `http://10.0.0.5:8000/v1`, `localhost:8000`, `127.0.0.1`, `[::1]:8000`: addresses that no public name hides. */
const PRIVATE = [
  /\b(?:https?|wss?|tcp):\/\/(?:[^\s/@"'<>]*@)?(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?(?:\/[^\s"'<>)\]},;]*[^\s"'<>)\]},;:.])?\/?/gi,
  /\blocalhost:\d+/gi,
  /\[(?=[0-9a-f:]*::|(?:[0-9a-f]{1,4}:){7})[0-9a-f:]+\](?::\d+)?/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}\b(?:(?::|', |", )\d+)?/g,
]

/** Without what ends a sentence. */
const PATH = '(?:/[^\\s"\'<>)\\]},;]*[^\\s"\'<>)\\]},;:.])?/?'

/** `text` without addresses of machines and without the hosts of `urls` (base URLs of the upstreams). */
export function withoutAddresses(text: string, urls: readonly string[]): string {
  const named = urls.flatMap(url => (URL.canParse(url) ? [new URL(url)] : []))
  const patterns = [
    ...named.map(({ host }) => new RegExp(`\\bhttps?://${escaped(host)}${PATH}`, 'gi')),
    // A bare word may be a word; with a dot, dash or port it is none.
    ...named
      .flatMap(({ host, hostname }) => [host, hostname])
      .filter(name => /[.:-]/.test(name))
      .map(name => new RegExp(`(?<![\\w.-])${escaped(name)}(?![\\w-])`, 'gi')),
    ...PRIVATE,
  ]
  return patterns.reduce((clean, pattern) => clean.replace(pattern, SERVER), text)
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
