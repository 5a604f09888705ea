import { BAR_WIDTH, barsOf, type Span, type TimelineStep } from './timeline.ts'

/** A stretch of a step in the picture of a run: across is time, and what went on at the same time stands one below the other. */
export interface LaneBar {
  stepId: string
  lane: number
  /** In parts of a thousand of the whole time. */
  x: number
  width: number
  className: string
  replayed: boolean
}

export interface LaneName {
  stepId: string
  words: string
  lane: number
  x: number
  width: number
}

export interface Lanes {
  count: number
  bars: LaneBar[]
  /** Only where there is room for words. */
  names: LaneName[]
}

/** How high a lane is drawn, with its words. */
export const LANE_PX = 28
/** Below that a bar has no room for words. */
const ROOM = 70
/** Bars that are this narrow and this close together are one to the eye; thousands of them would slow the page down. */
const HAIR = 2

/**
 * Steps in as few lanes as there were steps at one time: each goes to the first lane that is free when it begins, so what came one after
 * the other stays in the first, and parallel calls stand side by side.
 */
export function lanesOf(steps: readonly TimelineStep[], span: Span): Lanes {
  const freeFrom: number[] = []
  const last: (LaneBar | undefined)[] = []
  const bars: LaneBar[] = []
  const names: LaneName[] = []
  const begun = steps.filter(({ pieces }) => pieces.length > 0)
  for (const step of begun.toSorted((a, b) => a.pieces[0]!.fromMs - b.pieces[0]!.fromMs)) {
    const { stepId, pieces, name, replayed } = step
    const fromMs = pieces[0]!.fromMs
    const toMs = pieces.at(-1)!.toMs ?? span.toMs
    const free = freeFrom.findIndex(at => at <= fromMs)
    const lane = free === -1 ? freeFrom.length : free
    freeFrom[lane] = Math.max(toMs, fromMs)
    for (const { x, width, className } of barsOf(step, span)) {
      const before = last[lane]
      if (before && width <= HAIR * 2 && before.className === className && before.replayed === replayed) {
        const end = Math.max(before.x + before.width, x + width)
        if (x - (before.x + before.width) <= HAIR) {
          before.width = end - before.x
          continue
        }
      }
      const bar = { stepId, lane, x, width, className, replayed }
      last[lane] = bar
      bars.push(bar)
    }
    const x = ((fromMs - span.fromMs) / (span.toMs - span.fromMs)) * BAR_WIDTH
    const width = ((toMs - fromMs) / (span.toMs - span.fromMs)) * BAR_WIDTH
    if (width >= ROOM) names.push({ stepId, words: name === '' ? stepId : name, lane, x, width })
  }
  return { count: freeFrom.length, bars, names }
}

/** As a part of the whole picture: it is as wide as there is room. */
export const across = (x: number): string => `${(x / BAR_WIDTH) * 100}%`
