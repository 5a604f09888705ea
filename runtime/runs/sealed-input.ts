/** The input of a schedule, sealed to the key of the pool whose nodes alone can read it. */
export interface SealedInput {
  pool: string
  box: Uint8Array<ArrayBuffer>
  /** SHA-256 of the canonical text. */
  hash: string
  /** Of the canonical text, in characters. */
  length: number
}

/** What stands for a sealed input where only its length counts: what a run is expected to cost. */
export const placeholderInput = ({ length }: Pick<SealedInput, 'length'>): string => ' '.repeat(length)

/** Seals where the agent belongs to a pool that has a key; undefined where the input stays as it is. */
export type SealInput = (
  agent: { tenantId: string; agentName: string; sealed?: { pool: string } | undefined },
  scheduleId: string,
  input: string,
) => Promise<SealedInput | undefined>
