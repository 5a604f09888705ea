import type { RoutingConfig } from './config/routing-config.ts'

/**
 * What a routing config may ask for by contract and this version does not do yet, a sentence each. Such a config is
 * refused: a setting that is read and then ignored would be a promise nobody keeps.
 */
export function unavailable({ routes }: RoutingConfig): string[] {
  const found: string[] = []
  const say = (what: string, instead: string) => void found.push(`${what} is not available in this version: ${instead}`)
  for (const { ix, shadowRate } of routes) {
    const at = `in [[route]] #${ix + 1}`
    if (shadowRate > 0) say(`shadow_rate ${at}`, 'leave it out; savings are shown on the same-token baseline')
  }
  return found
}
