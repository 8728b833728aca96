// Who may call the control API. A session's model key is never enough: it answers 403, so that an agent that tries learns
// nothing about the token.

import { createHash, timingSafeEqual } from 'node:crypto'

export interface AuthSettings {
  readonly token: string
  /** `METHOD /path`; a `*` stands for one path element. */
  readonly openRoutes: readonly string[]
}

export interface AuthRequest {
  readonly method: string
  /** Without query. */
  readonly path: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export type AuthVerdict = 'allowed' | 'missing' | 'wrong' | 'session-key' | 'foreign-page'

/** Health is always open; it shows no session ids. */
const ALWAYS_OPEN: readonly string[] = ['GET /', 'HEAD /', 'GET /health', 'HEAD /health']

export function authorize(request: AuthRequest, settings: AuthSettings): AuthVerdict {
  const given = credential(request.headers)
  if (given !== null && sameSecret(given, settings.token)) return 'allowed'
  if (given?.startsWith('sk-')) return 'session-key'
  if (matchesRoute(request, ALWAYS_OPEN)) return 'allowed'
  if (matchesRoute(request, settings.openRoutes)) {
    // A web page in a browser on this machine can reach loopback; programs that may use an open route send no Origin.
    return request.headers['origin'] === undefined ? 'allowed' : 'foreign-page'
  }
  return given === null ? 'missing' : 'wrong'
}

/** Constant time for any lengths. */
export function sameSecret(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}

function credential(headers: AuthRequest['headers']): string | null {
  const token = headers['x-polar-control-token']
  if (typeof token === 'string' && token !== '') return token
  const bearer = headers['authorization']
  const match = typeof bearer === 'string' ? /^Bearer\s+(\S+)\s*$/i.exec(bearer) : null
  if (match?.[1] !== undefined) return match[1]
  // The carriers of model keys are read too, so that such a key is told apart from none.
  const key = headers['x-api-key'] ?? headers['x-goog-api-key']
  return typeof key === 'string' && key !== '' ? key : null
}

function matchesRoute({ method, path }: AuthRequest, routes: readonly string[]): boolean {
  return routes.some(route => {
    const [wantedMethod, wantedPath = ''] = route.split(' ')
    const wanted = wantedPath.split('/')
    const parts = path.split('/')
    return (
      wantedMethod === method &&
      wanted.length === parts.length &&
      wanted.every((part, index) => part === '*' || part === parts[index])
    )
  })
}
