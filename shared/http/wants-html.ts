/** A browser that goes to an address, and no program that calls an API: those take anything, or JSON. */
export function wantsHtml({ method, headers }: Pick<Request, 'method' | 'headers'>): boolean {
  return (method === 'GET' || method === 'HEAD') && /(?:^|,)\s*text\/html\b/i.test(headers.get('accept') ?? '')
}
