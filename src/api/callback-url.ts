// Which URLs the service will post results to: it connects to them, so they are checked before a task is accepted.

/** True for addresses that stay on this machine. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

/**
 * What is wrong with `url` as a callback, or null. `allowed` = hosts of `security.callbackHosts`, each a name, a name with its port,
 * or `*` for any; loopback is always allowed.
 */
export function callbackProblem(url: string, allowed: readonly string[]): string | null {
  if (!URL.canParse(url)) return 'wanted an http or https URL'
  const parsed = new URL(url)
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    return `wanted an http or https URL, got ${parsed.protocol}//`
  if (parsed.username !== '' || parsed.password !== '') return 'must not hold credentials'
  if (isLoopbackHost(parsed.hostname)) return null
  const matches = allowed.some(host => host === '*' || host === parsed.hostname || host === parsed.host)
  return matches ? null : `host "${parsed.hostname}" is not in security.callbackHosts`
}
