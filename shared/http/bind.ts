import { z } from 'zod'

export interface Bind {
  host: string
  port: number
}

const BIND = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/

/** `host:port` or `[v6]:port`; port 0 asks for a free one. */
export const bindSchema = z.string().transform((text, ctx): Bind => {
  const match = BIND.exec(text.trim())
  const port = Number(match?.[3])
  if (match && port <= 65_535) return { host: (match[1] ?? match[2])!, port }
  ctx.addIssue({ code: 'custom', message: 'expected host:port or [v6]:port' })
  return z.NEVER
})

/** True for addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host) || /^::ffff:127\./i.test(host)
}

export function toOrigin({ host, port }: Bind): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
