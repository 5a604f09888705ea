/** What one workload cost, in things that can be counted and do not depend on the machine. */
export interface Work {
  counts: Record<string, number>
  texts: string[]
  /** How long it took, for what a timer does. */
  ms?: number
}
