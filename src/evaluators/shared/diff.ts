// Cuts a git diff into sections by file and names each file, byte for byte: a diff holds any encoding and binary data, so it
// is looked at as latin1 text and never written back from a decoded view.

import picomatch from 'picomatch'

export interface DiffSection {
  /** Path in the new tree, UTF-8; the old one's for a deleted file. */
  readonly path: string
  readonly isNew: boolean
  readonly bytes: Buffer
}

/** Sections in order. Text before the first one (a commit message of a custom command) is left out. */
export function diffSections(diff: Buffer): readonly DiffSection[] {
  const text = diff.toString('latin1')
  const starts = [...text.matchAll(/^diff --git /gm)].map(match => match.index)
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? text.length
    const section = text.slice(start, end)
    const header = headerOf(section)
    return {
      path: pathOf(header) ?? '',
      isNew: /^new file mode /m.test(header),
      bytes: diff.subarray(start, end),
    }
  })
}

/** Lines before the first hunk or binary block; what follows is content and may look like a header. */
function headerOf(section: string): string {
  const content = /^(@@ |GIT binary patch|Binary files )/m.exec(section)
  return content === null ? section : section.slice(0, content.index)
}

function pathOf(header: string): string | null {
  for (const pattern of [/^rename to (.*)$/m, /^copy to (.*)$/m]) {
    const found = pattern.exec(header)?.[1]
    if (found !== undefined) return unquote(found)
  }
  for (const pattern of [/^\+\+\+ (.*)$/m, /^--- (.*)$/m]) {
    const found = pattern.exec(header)?.[1]
    // A tab ends an unquoted name that holds spaces.
    const name = found === undefined ? null : unquote(found.replace(/\t$/, ''))
    if (name !== null && name !== '/dev/null') return name.replace(/^[ab]\//, '')
  }
  return sameNameOf(/^diff --git (.*)$/m.exec(header)?.[1] ?? '')
}

/** `a/NAME b/NAME`, where NAME may hold spaces: a file without text content has no other line that names it. */
function sameNameOf(names: string): string | null {
  const quoted = /^"((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"$/.exec(names)
  if (quoted) return unquote(`"${quoted[2]}"`).replace(/^b\//, '')
  const half = (names.length - 1) / 2
  const [left, right] = [names.slice(0, half), names.slice(half + 1)]
  if (Number.isInteger(half) && left.slice(2) === right.slice(2)) return decode(right.slice(2))
  const last = names.lastIndexOf(' b/')
  return last < 0 ? null : decode(names.slice(last + 3))
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '"': '"',
  '\\': '\\',
}

/** Git puts unusual names in quotation marks, bytes as octal. Returns UTF-8. */
function unquote(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return decode(name)
  const bytes = name
    .slice(1, -1)
    .replace(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
    )
  return decode(bytes)
}

const decode = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')

/** What no patch should carry, whatever the task (contract 10.2). */
export const DEFAULT_EXCLUDES: readonly string[] = ['__pycache__', '*.pyc', '*.pyo', '.pytest_cache']

/**
 * True for paths that a pattern names, at any depth, as the file itself or a folder above it. `*` crosses `/`.
 */
export function pathMatcher(patterns: readonly string[]): (path: string) => boolean {
  const all = patterns
    .map(pattern => pattern.replace(/\/+$/, ''))
    .filter(pattern => pattern !== '')
    .flatMap(pattern => [pattern, `*/${pattern}`, `${pattern}/*`, `*/${pattern}/*`])
  const matches = all.length === 0 ? () => false : picomatch(all, { bash: true, dot: true })
  return path => matches(path)
}
