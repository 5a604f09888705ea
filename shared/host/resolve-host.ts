import { lookup } from 'node:dns/promises'

export interface Resolved {
  address: string
  family: 4 | 6
}

/** Every address of a name, as the operating system gives them. */
export type ResolveHost = (host: string) => Promise<readonly Resolved[]>

export const resolveHost: ResolveHost = async host => {
  const found = await lookup(host, { all: true })
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}
