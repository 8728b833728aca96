// Versions of src/median.js of the bundled task that the policy may write. Right ones pass every test; each wrong one makes a
// mistake that people make. A test runs them all.

import { type Part, sequence } from '../grammar.js'
import { phrase } from '../prose.js'

export interface Fix {
  readonly right: boolean
  /** The file behind its first comment, with its last line feed. */
  readonly code: string
}

/** The file's first comment behind its slashes, without its full stop. */
export const COMMENT: Part = sequence(
  phrase(
    ' {The|Gives the|Finds the|Returns the} {middle|median|central} {value|number|element} {of|in|among} {a list|the list|a row|a series} of {numbers|values}',
  ),
  phrase('{, which stays as it is|, left unchanged|, in any order|}'),
)

const NAMES = ['sorted', 'ordered', 'values'] as const
const HEAD = '.\n\nexport function median(numbers) {\n'

/** All versions, in a fixed order. */
export function fixes(): readonly Fix[] {
  return NAMES.flatMap(name =>
    copies(name).flatMap(({ right: copied, line }) =>
      endings(name).map(({ right: ended, lines }) => ({
        right: copied && ended,
        code: `${HEAD}  ${line}\n${lines.map(text => `  ${text}\n`).join('')}}\n`,
      })),
    ),
  ).filter(keepOneMistake())
}

interface Piece {
  readonly right: boolean
}

const copies = (name: string): readonly (Piece & { readonly line: string })[] => [
  { right: true, line: `const ${name} = [...numbers].sort((a, b) => a - b)` },
  { right: true, line: `const ${name} = numbers.slice().sort((a, b) => a - b)` },
  // Changes the caller's list.
  { right: false, line: `const ${name} = numbers.sort((a, b) => a - b)` },
  // Sorts as text.
  { right: false, line: `const ${name} = [...numbers].sort()` },
]

const endings = (name: string): readonly (Piece & { readonly lines: readonly string[] })[] => [
  {
    right: true,
    lines: [
      `const middle = Math.floor(${name}.length / 2)`,
      `if (${name}.length % 2 === 1) return ${name}[middle]`,
      `return (${name}[middle - 1] + ${name}[middle]) / 2`,
    ],
  },
  {
    right: true,
    lines: [
      `const middle = ${name}.length / 2`,
      `if (${name}.length % 2 === 0) return (${name}[middle - 1] + ${name}[middle]) / 2`,
      `return ${name}[Math.floor(middle)]`,
    ],
  },
  // Forgets the even count.
  { right: false, lines: [`return ${name}[Math.floor(${name}.length / 2)]`] },
  // Takes the wrong neighbour.
  {
    right: false,
    lines: [
      `const middle = Math.floor(${name}.length / 2)`,
      `if (${name}.length % 2 === 1) return ${name}[middle]`,
      `return (${name}[middle] + ${name}[middle + 1]) / 2`,
    ],
  },
]

/** Leaves out versions with two mistakes at once: nobody learns from those. */
function keepOneMistake(): (fix: Fix) => boolean {
  return ({ right, code }) => {
    if (right) return true
    const badCopy = / = numbers\.sort|\.sort\(\)/.test(code)
    const badEnd = /middle \+ 1|return \w+\[Math\.floor\(\w+\.length/.test(code)
    return badCopy !== badEnd
  }
}
