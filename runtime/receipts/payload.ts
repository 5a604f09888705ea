import { toUsd } from '../../shared/money/money.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import { CHAIN } from '../../shared/wire/runtime/journal.ts'
import type { ReceiptPayload } from '../../shared/wire/runtime/receipt.ts'

/** What a receipt says of a run, before it is said by whom and when. */
export interface RunFacts {
  runId: string
  tenantId: string
  agentName: string
  agentVersionId: string
  manifestHash: string
  status: ReceiptPayload['status']
  /** Canonical texts. */
  input: string
  output: string
  tokensIn: number
  tokensOut: number
  costNano: number
  models: readonly string[]
  isolation: string
  nodeId: string
  head: { seq: number; hash: string }
  createdMs: number
  finishedMs: number
}

export type Statement = Omit<ReceiptPayload, 'issuedAt' | 'keyId'>

/** The same of a run whose texts are on a node: their hashes, and the node's signature over what it told. */
export interface HashedFacts extends Omit<RunFacts, 'input' | 'output'> {
  inputHash: string
  outputHash: string
  node?: { publicKey: string; signature: string } | undefined
}

/** The members that a receipt has because of the run (docs/spec/proof.md); the verifier makes them again from the store. */
export function statementOf({ input, output, ...facts }: RunFacts, sha256: Sha256): Statement {
  return statementFrom({
    ...facts,
    inputHash: sha256Hex(input, sha256),
    outputHash: sha256Hex(output, sha256),
  })
}

export function statementFrom(facts: HashedFacts): Statement {
  const { runId, tenantId, agentName, agentVersionId, manifestHash, status, tokensIn, tokensOut, nodeId, head } = facts
  return {
    version: 1,
    runId,
    tenantId,
    agentName,
    agentVersionId,
    manifestHash,
    status,
    inputHash: facts.inputHash,
    outputHash: facts.outputHash,
    tokensIn,
    tokensOut,
    costUsd: toUsd(facts.costNano),
    models: [...facts.models],
    isolation: facts.isolation as Statement['isolation'],
    nodeId,
    chain: CHAIN,
    journalHash: head.hash,
    eventCount: head.seq,
    createdAt: new Date(facts.createdMs).toISOString(),
    finishedAt: new Date(facts.finishedMs).toISOString(),
    ...(facts.node && { node: facts.node }),
  }
}
