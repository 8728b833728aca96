// Accept: q-values, specificity, and what is malformed.

import t from 'tap'
import { acceptedType } from '../../../src/http/accept.js'

const JSON_TYPE = 'application/json'
const BINARY = 'application/vnd.sextant.result'

const CASES: readonly (readonly [string | undefined, string | null])[] = [
  [undefined, JSON_TYPE],
  ['', JSON_TYPE],
  ['*/*', JSON_TYPE],
  ['application/*', JSON_TYPE],
  ['application/json', JSON_TYPE],
  [BINARY, BINARY],
  ['Application/Vnd.Sextant.Result', BINARY],
  [`${BINARY}, ${JSON_TYPE}`, JSON_TYPE],
  [`${BINARY}, ${JSON_TYPE};q=0.9`, BINARY],
  [`${BINARY};q=0.2, ${JSON_TYPE};q=0.1`, BINARY],
  [`${BINARY};q=0.1, ${JSON_TYPE};q=0.2`, JSON_TYPE],
  [`${BINARY} ; Q=1.000, */*;q=0.5`, BINARY],
  ['application/json;q=0, */*', BINARY],
  [`application/*;q=0.3, ${JSON_TYPE};q=0.2`, BINARY],
  ['text/html', null],
  ['*/*;q=0', null],
  [`${BINARY};q=0`, null],
  [`${BINARY};q=2`, null],
  [`${BINARY};q=x, text/html`, null],
  ['nonsense', null],
  [`nonsense, ${BINARY};charset=x`, BINARY],
]

for (const [header, wanted] of CASES)
  t.equal(acceptedType(header, [JSON_TYPE, BINARY]), wanted, `Accept: ${header === undefined ? '(none)' : header}`)
