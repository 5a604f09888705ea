/** The same question once more, for another shard: of what has no body. The request of a host may be no `Request` that can be copied. */
export const again = ({ url, method, headers }: Request): Request => new Request(url, { method, headers })
