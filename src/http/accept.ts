// Content negotiation by `Accept` (RFC 9110, 12.5.1): media ranges with q-values, the more specific range decides.

/** One of `offers` (lower case, best first), or null when the header refuses them all. No header, or an empty one, takes the first. */
export function acceptedType(header: string | undefined, offers: readonly string[]): string | null {
  if (header === undefined || header.trim() === '') return offers[0] ?? null
  const ranges = header.split(',').flatMap(part => rangeOf(part) ?? [])
  let best: string | null = null
  let most = 0
  for (const offer of offers) {
    const quality = qualityOf(offer, ranges)
    if (quality <= most) continue
    best = offer
    most = quality
  }
  return best
}

interface MediaRange {
  readonly range: string
  /** 0 to 1. */
  readonly quality: number
}

function rangeOf(part: string): MediaRange | null {
  const [range = '', ...parameters] = part.split(';').map(piece => piece.trim().toLowerCase())
  if (!/^[^\s/]+\/[^\s/]+$/.test(range)) return null
  const given = parameters.find(parameter => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '')
  if (given === undefined) return { range, quality: 1 }
  const quality = Number(given)
  return /^[01](\.\d{0,3})?$/.test(given) && quality <= 1 ? { range, quality } : null
}

/** Of the most specific range that fits; 0 = refused. */
function qualityOf(offer: string, ranges: readonly MediaRange[]): number {
  for (const wanted of [offer, `${offer.split('/')[0]}/*`, '*/*']) {
    const fitting = ranges.filter(({ range }) => range === wanted)
    if (fitting.length > 0) return Math.max(...fitting.map(({ quality }) => quality))
  }
  return 0
}
