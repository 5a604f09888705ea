import { el, svg, table } from '../../../shared/browser/dom.ts'
import { count, many } from '../../../shared/browser/figures.ts'
import type { Evals, RungMove } from '../../../shared/wire/router/evals.ts'

export interface FlowLine {
  /** A path of an SVG; its width is its share of all calls. */
  path: string
  width: number
  kind: 'in' | 'out' | 'move'
  words: string
  /** Where its number stands. */
  label: { x: number; y: number; text: string; end: 'start' | 'middle' | 'end' }
}

export interface Flow {
  width: number
  height: number
  /** Rungs from the highest to the lowest, each with its box. */
  rungs: { rung: number; y: number }[]
  lines: FlowLine[]
}

const WIDTH = 340
const ROW = 84
const BOX = { x: 120, width: 84, height: 34 }
/** As wide as all calls together are drawn. */
const WIDEST = 22

/**
 * Calls come in from the left on the rung where they begin, go from box to box where an attempt led to another, and go out on the right
 * from the rung that served them.
 */
export function flowOf(moves: readonly RungMove[], servedByRung: Evals['served_by_rung']): Flow {
  const served = new Map(Object.entries(servedByRung).map(([rung, n]) => [Number(rung), n]))
  const all = [...new Set([...served.keys(), ...moves.flatMap(({ from, to }) => (from === null ? [to] : [from, to]))])]
  const rungs = all.sort((a, b) => b - a).map((rung, i) => ({ rung, y: ROW * (i + 0.5) }))
  const middle = new Map(rungs.map(({ rung, y }) => [rung, y]))
  const most = Math.max(1, ...moves.map(({ requests }) => requests), ...served.values())
  const wide = (n: number) => Math.max(1, (n / most) * WIDEST)
  const lines: FlowLine[] = []
  let climbs = 0
  for (const { from, to, requests } of moves) {
    const y = middle.get(to)!
    const width = wide(requests)
    if (from === null) {
      const words = `${many(requests, 'call')} began on rung ${to}`
      const label = { x: 4, y: y - width / 2 - 5, text: `${count(requests)} began`, end: 'start' as const }
      lines.push({ path: `M0 ${y}H${BOX.x}`, width, kind: 'in', words, label })
      continue
    }
    // What stays on its rung asks another provider, or the same again; the table says how often.
    if (from === to) continue
    const start = middle.get(from)!
    const up = y < start
    const words = `${many(requests, 'answer')} went on from rung ${from} to rung ${to}`
    const [a, b] = [start + (up ? -1 : 1) * (BOX.height / 2), y + (up ? 1 : -1) * (BOX.height / 2)]
    const near = Math.abs(y - start) <= ROW
    const x = near ? BOX.x + BOX.width / 2 + (up ? -18 : 18) : BOX.x + 8 + (climbs++ % 3) * 5
    const bend = near ? x : x - 34
    const text = count(requests)
    const label = {
      x: near ? x + width / 2 + 4 : bend - 2,
      y: (a + b) / 2 + 4,
      text,
      end: near ? 'start' : 'end',
    } as const
    lines.push({
      path: `M${x} ${a}C${bend} ${(a + b) / 2} ${bend} ${(a + b) / 2} ${x} ${b}`,
      width,
      kind: 'move',
      words,
      label,
    })
  }
  for (const [rung, n] of served) {
    const y = middle.get(rung)!
    const width = wide(n)
    const words = `${many(n, 'call')} served from rung ${rung}`
    const label = { x: WIDTH - 4, y: y - width / 2 - 5, text: `${count(n)} served`, end: 'end' as const }
    lines.push({ path: `M${BOX.x + BOX.width} ${y}H${WIDTH}`, width, kind: 'out', words, label })
  }
  return { width: WIDTH, height: Math.max(1, rungs.length) * ROW, rungs, lines }
}

/** The picture, and the same as a table for readers who cannot see it. */
export function flowView({ moves, served_by_rung }: Pick<Evals, 'moves' | 'served_by_rung'>): HTMLElement[] {
  const flow = flowOf(moves, served_by_rung)
  if (flow.rungs.length === 0) return []
  const summary = flow.lines.map(({ words }) => words).join('; ')
  const picture = svg(
    'svg',
    { viewBox: `0 0 ${flow.width} ${flow.height}`, class: 'flow', role: 'img', 'aria-label': summary },
    ...flow.lines.map(({ path, width, kind, words }) =>
      svg('path', { d: path, 'stroke-width': width, class: kind }, svg('title', {}, words)),
    ),
    ...flow.rungs.flatMap(({ rung, y }) => [
      svg('rect', { x: BOX.x, y: y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 5 }),
      svg('text', { x: BOX.x + BOX.width / 2, y: y + 4, 'text-anchor': 'middle' }, `Rung ${rung}`),
    ]),
    ...flow.lines.map(({ label: { x, y, text, end } }) => svg('text', { x, y, 'text-anchor': end }, text)),
  )
  const rows = [
    ...moves.map(({ from, to, requests }) => [
      from === null ? 'came in' : `rung ${from}`,
      from === to ? `rung ${to} again` : `rung ${to}`,
      count(requests),
    ]),
    ...Object.entries(served_by_rung).map(([rung, n]) => [`rung ${rung}`, 'served', count(n)]),
  ]
  return [
    el('figure', {}, picture),
    el(
      'details',
      {},
      el('summary', {}, 'As a table'),
      table('From rung to rung', ['From', 'To', { num: 'Answers' }], rows),
    ),
  ]
}
