// The text of a whole event stream -> its frames, in the form that the clients in miniature read.

import type { HeldFrame } from './dialects.js'

export type Framed = HeldFrame

/** Comments are dropped; every frame counts as held: whether it was is another test's question. */
export function framesOfText(text: string): readonly Framed[] {
  return text
    .split('\n\n')
    .filter(block => block !== '' && !block.startsWith(':'))
    .map(block => {
      const lines = block.split('\n')
      const field = (name: string) =>
        lines
          .filter(line => line.startsWith(`${name}: `))
          .map(line => line.slice(name.length + 2))
          .join('\n')
      return { frame: { event: field('event') || null, data: field('data') }, hold: true }
    })
}
