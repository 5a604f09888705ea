import type { RoutingConfig, Rung } from '../config/routing-config.ts'
import { namesInstead } from './agent.ts'
import { costBound } from './cost-bound.ts'

/** A call as agents make them, to compare what models cost by. */
const USUAL = { input: 10_000, output: 1000 }

/** What a config may say, and hardly means. */
export function configWarnings({ routes }: Pick<RoutingConfig, 'routes'>): string[] {
  return routes.flatMap(({ ix, ladder, match }) => {
    const warnings: string[] = []
    for (const agent of match.agent ?? []) {
      const names = namesInstead(agent)
      if (names === undefined) continue
      warnings.push(
        `[[route]] #${ix + 1}: ${agent} does not name itself, so agent = "${agent}" matches only calls with the header ` +
          `x-router-agent: ${agent}; its own calls come as ${names.join(' or ')}`,
      )
    }
    ladder.forEach((rung, i) => {
      const above = ladder[i + 1]
      if (above === undefined || !isDearer(rung, above)) return
      warnings.push(
        `[[route]] #${ix + 1}: its ladder asks ${rung.model} before ${above.model}, which is cheaper: a ladder goes from the cheapest ` +
          'model to the dearest, and this one costs more than its top rung alone would',
      )
    })
    return warnings
  })
}

function isDearer(a: Rung, b: Rung): boolean {
  return a.price !== null && b.price !== null && costBound(a.price, USUAL, 'none') > costBound(b.price, USUAL, 'none')
}
