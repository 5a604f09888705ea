import { genesisText } from './journal-walk.ts'
import { type Sha256, sha256, sha256Hex } from './sha256.ts'

/** h_0: the head of a run that has no events. */
export function journalGenesis(runId: string, hash: Sha256 = sha256): string {
  return sha256Hex(genesisText(runId), hash)
}
