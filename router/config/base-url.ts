const LOOPBACK = /^(?:localhost|(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Says what is wrong with an address that calls go to; never repeats it, since people paste keys into addresses. */
export function urlProblem(text: string, rule: { plainHttp: boolean }): string | undefined {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return 'expected an https address'
  if (url.username !== '' || url.password !== '') return 'a user name or password has no place in the address'
  if (url.hash !== '') return 'expected an address without "#"'
  if (url.protocol === 'http:' && !rule.plainHttp && !isLoopback(url.hostname))
    return 'plain http goes to this machine only: use https'
  return undefined
}

function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname.toLowerCase())
}
