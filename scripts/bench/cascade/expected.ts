/** docs/spec/router.md §11.2, figure by figure, each with the last digit that it is given to. */
export interface Expected {
  name: string
  value: number
  within: number
}

const exact = (name: string, value: number): Expected => ({ name, value, within: 0 })
const near = (name: string, value: number, within: number): Expected => ({ name, value, within })

export const EXPECTED: readonly Expected[] = [
  exact('attempts', 1160),
  exact('gate pass', 940),
  exact('gate fail', 220),
  exact('escalations', 186),
  exact('served by rung 0', 791),
  exact('served by rung 1', 183),
  exact('served from attempt', 940),
  exact('served from best_attempt', 34),
  exact('errors', 0),
  exact('total cost, nano-USD', 2_996_131_000),
  exact('served correct', 909),
  exact('served failed', 65),
  exact('always rung 0, right', 763),
  exact('always rung 0, nano-USD', 1_339_621_000),
  exact('always rung 1, right', 919),
  exact('always rung 1, nano-USD', 7_284_915_000),
  exact('won against always top', 6),
  exact('lost against always top', 16),
  exact('won against always cheap', 146),
  exact('lost against always cheap', 0),
  exact('baseline_same_token, nano-USD', 14_924_190_000),
  exact('savings_usd, nano-USD', 11_928_059_000),
  exact('true saving, nano-USD', 4_288_784_000),
  near('bootstrap success, low', 0.916838, 5e-7),
  near('bootstrap success, high', 0.948665, 5e-7),
  near('bootstrap success against top, low', -0.020534, 5e-7),
  near('bootstrap success against top, high', -0.001027, 5e-7),
  near('bootstrap USD a task against top, low', -0.00460605, 5e-9),
  near('bootstrap USD a task against top, high', -0.00417581, 5e-9),
  near('bootstrap success against cheap, low', 0.128337, 5e-7),
  near('bootstrap success against cheap, high', 0.173511, 5e-7),
  ...pairs('rung 0', [
    [1, 788, 25, 0.07532, 1.95e-13, 5e-16],
    [0.5, 811, 48, 0.10216, 2.278e-5, 5e-9],
    [0, 974, 211, 0.25585, 1, 1e-9],
  ]),
  exact('rung 0, conformal certifies from', 1),
  exact('rung 0, ltt certifies from', 0.5),
  ...pairs('served', [
    [1, 940, 31, 0.0729, 3.96e-15, 5e-18],
    [0.5, 955, 46, 0.08777, 3.35e-9, 5e-12],
    [0, 974, 65, 0.10595, 1.68e-4, 5e-8],
  ]),
  exact('served, conformal certifies from', 0.5),
  exact('served, ltt certifies from', 0),
  exact('evals: requests', 974),
  exact('evals: escalations', 186),
  exact('evals: served by rung 0', 791),
  exact('evals: served by rung 1', 183),
  exact('evals: gate pass', 940),
  exact('evals: gate fail', 220),
  exact('evals: outcomes reported', 974),
  exact('evals: outcomes failed', 65),
  exact('savings: spent, nano-USD', 2_996_131_000),
  exact('savings: baseline, nano-USD', 14_924_190_000),
  exact('savings: saved, nano-USD', 11_928_059_000),
  exact('capabilities: pairs of the route', 974),
  exact('metrics: router_realized_served_failure', 65 / 974),
  exact('the chains of receipts and feedback hold', 1),
]

function pairs(
  of: string,
  rows: readonly [lambda: number, n: number, failures: number, ucb: number, p: number, within: number][],
): Expected[] {
  return rows.flatMap(([lambda, n, failures, ucb, p, within]) => [
    exact(`${of} from ${lambda}: n`, n),
    exact(`${of} from ${lambda}: failed`, failures),
    near(`${of} from ${lambda}: Hoeffding bound`, ucb, 5e-6),
    near(`${of} from ${lambda}: p`, p, within),
  ])
}

/** Each figure that is not what it must be, in words. */
export function differences(figures: ReadonlyMap<string, number>): string[] {
  const expected = new Set(EXPECTED.map(({ name }) => name))
  return [
    ...EXPECTED.filter(
      ({ name, value, within }) => !(Math.abs((figures.get(name) ?? Number.NaN) - value) <= within),
    ).map(({ name, value }) => `${name}: expected ${value}, got ${figures.get(name)}`),
    ...[...figures.keys()].filter(name => !expected.has(name)).map(name => `${name}: nobody expects this figure`),
  ]
}
