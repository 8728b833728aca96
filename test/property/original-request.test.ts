// Whatever bodies a session sends, in whatever order: each is had again to the character.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { CompletionId } from '../../src/domain/ids.js'
import { differenceFrom, type OriginalParts, type WholeBody, wholeOriginal } from '../../src/ledger/original-request.js'

t.test('a body kept as its difference is had again to the character', async () => {
  const piece = fc.string({ unit: 'binary', maxLength: 30 })
  const bodies = fc.array(fc.tuple(fc.array(fc.nat(7), { maxLength: 12 }), piece), { maxLength: 20 })
  const words = fc.array(fc.string({ unit: 'binary', maxLength: 700 }), { minLength: 8, maxLength: 8 })
  fc.assert(
    fc.property(bodies, words, (specs, vocabulary) => {
      const kept = new Map<CompletionId, OriginalParts>()
      let earlier: readonly WholeBody[] = []
      const texts = specs.map(([indexes, own], index) => {
        const text = indexes.map(word => vocabulary[word]).join('') + own
        const completionId = `c${index}` as CompletionId
        kept.set(completionId, differenceFrom(text, earlier))
        earlier = [...earlier.slice(-1), { completionId, text }]
        return [completionId, text] as const
      })
      for (const [completionId, text] of texts) {
        const parts = kept.get(completionId)
        assert.equal(parts && wholeOriginal(parts, id => kept.get(id)), text)
      }
    }),
    { numRuns: 200 },
  )
})
