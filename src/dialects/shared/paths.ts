// Recognising paths. A base URL may carry any prefix, a doubled `/v1` or none at all (obligation A-64), so a route is known by its tail.
// `/v1` in the prefix must stand right before the tail: `/v1/threads/t/messages` is another API's path and no route of ours.

/** True when `path` is `tail` under a legal base. `tail` has no leading slash, e.g. `chat/completions`. */
export function endsWithRoute(path: string, tail: string): boolean {
  const segments = trimmed(path)
  const wanted = tail.split('/')
  if (segments.length < wanted.length) return false
  const start = segments.length - wanted.length
  if (wanted.some((segment, index) => segments[start + index] !== segment)) return false
  const prefix = segments.slice(0, start)
  return prefix.at(-1) === 'v1' || !prefix.includes('v1')
}

/** The last segment of `path` when the one before it is `parent` under a legal base (`models/{id}`), decoded; else null. */
export function lastSegmentUnder(path: string, parent: string): string | null {
  const segments = trimmed(path)
  const last = segments.at(-1)
  if (last === undefined || segments.length < 2) return null
  return endsWithRoute(segments.slice(0, -1).join('/'), parent) ? decodeSegment(last) : null
}

/** Percent decoding that never throws. */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

const trimmed = (path: string): string[] => path.split('/').filter(segment => segment !== '')
