import type { TimelineStep } from './browser/run/timeline.ts'

export interface StepPair {
  left: TimelineStep | undefined
  right: TimelineStep | undefined
}

/** Beyond so many pairs steps are aligned by their ids alone, since the table below would be too large. */
const MOST_PAIRS = 1_000_000

/**
 * The steps of two runs side by side. An id says the place of a step, so equal ids of one kind and name belong together; what one run did
 * besides stands alone, in its place.
 */
export function alignSteps(left: readonly TimelineStep[], right: readonly TimelineStep[]): StepPair[] {
  if (left.length * right.length > MOST_PAIRS) return byId(left, right)
  const alike = (a: TimelineStep, b: TimelineStep) => a.stepId === b.stepId && a.kind === b.kind
  const width = right.length + 1
  const common = new Uint32Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      common[i * width + j] = alike(left[i]!, right[j]!)
        ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
    }
  }
  const pairs: StepPair[] = []
  let i = 0
  let j = 0
  while (i < left.length && j < right.length) {
    if (alike(left[i]!, right[j]!)) pairs.push({ left: left[i++], right: right[j++] })
    else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
      pairs.push({ left: left[i++], right: undefined })
    else pairs.push({ left: undefined, right: right[j++] })
  }
  return [
    ...pairs,
    ...left.slice(i).map(one => ({ left: one, right: undefined })),
    ...right.slice(j).map(one => ({ left: undefined, right: one })),
  ]
}

function byId(left: readonly TimelineStep[], right: readonly TimelineStep[]): StepPair[] {
  const others = new Map(right.map(step => [step.stepId, step]))
  const pairs = left.map((step): StepPair => {
    const other = others.get(step.stepId)
    others.delete(step.stepId)
    return { left: step, right: other }
  })
  return [...pairs, ...[...others.values()].map(step => ({ left: undefined, right: step }))]
}
