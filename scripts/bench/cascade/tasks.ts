/** docs/spec/router.md §11.1: how a published run of 974 tasks came out on two models, grouped. */
const ROWS: readonly [
  cheapScore: number,
  cheapRight: boolean,
  topScore: number,
  topRight: boolean,
  tasks: number,
  cheapSum: number,
  topSum: number,
][] = [
  [1, true, 1, true, 757, 833_051, 357_701],
  [1, true, 1, false, 2, 3022, 973],
  [1, true, 0.5, false, 2, 2758, 1041],
  [1, true, 0, false, 2, 4405, 1300],
  [1, false, 1, true, 16, 25_560, 8558],
  [1, false, 1, false, 8, 10_569, 4754],
  [1, false, 0, false, 1, 1888, 900],
  [0.5, false, 1, true, 17, 24_880, 9877],
  [0.5, false, 0.5, false, 3, 4090, 1707],
  [0.5, false, 0, false, 3, 5192, 1933],
  [0, false, 1, true, 129, 314_191, 70_758],
  [0, false, 1, false, 6, 17_815, 5063],
  [0, false, 0.5, false, 9, 36_660, 4919],
  [0, false, 0, false, 19, 55_540, 16_177],
]

/** What a model does with a task. */
export interface Answered {
  score: number
  right: boolean
  input: number
  output: number
}

export interface Task {
  cheap: Answered
  top: Answered
}

/** The tasks one by one, in the order of the table. Both models cost 1:5, so N = input + 5·output decides the cost. */
export const TASKS: readonly Task[] = ROWS.flatMap(
  ([cheapScore, cheapRight, topScore, topRight, tasks, cheapSum, topSum]) =>
    Array.from({ length: tasks }, (_, i) => ({
      cheap: { score: cheapScore, right: cheapRight, ...tokens(part(cheapSum, tasks, i)) },
      top: { score: topScore, right: topRight, ...tokens(part(topSum, tasks, i)) },
    })),
)

function part(sum: number, tasks: number, i: number): number {
  return Math.floor(sum / tasks) + (i < sum % tasks ? 1 : 0)
}

function tokens(n: number): { input: number; output: number } {
  const output = Math.floor((n - 1) / 5)
  return { input: n - 5 * output, output }
}
