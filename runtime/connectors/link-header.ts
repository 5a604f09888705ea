export interface Link {
  url: string
  parameters: Readonly<Record<string, string>>
}

const LINK = /<([^<>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^",;\s]+))*)/g
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))/g

/** The link of a relation in a Link header (RFC 8288); the first, where several say the same. */
export function linkTo(relation: string, headers: Headers): Link | undefined {
  for (const [, url = '', rest = ''] of (headers.get('link') ?? '').matchAll(LINK)) {
    const parameters: Record<string, string> = {}
    for (const [, name = '', quoted, bare] of rest.matchAll(PARAMETER)) parameters[name] ??= quoted ?? bare ?? ''
    if (parameters.rel?.split(/\s+/).includes(relation)) return { url, parameters }
  }
  return undefined
}

/** A parameter of the query of the link to the next page. */
export function nextParameter(name: string, headers: Headers): string | undefined {
  const link = linkTo('next', headers)
  return (link && URL.parse(link.url, 'http://relative')?.searchParams.get(name)) ?? undefined
}
