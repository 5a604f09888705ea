import type { Log } from '../../../shared/log/log.ts'
import type { Live } from '../../sessions/live-sessions.ts'
import type { SessionStore } from '../../sessions/store.ts'
import { LIFE } from '../../sessions/store.ts'
import type { TurnText } from '../../sessions/turn-text.ts'
import type { RemoteRun } from '../runs/remote-run.ts'
import type { RemoteRunStore } from '../runs/remote-run-store.ts'

export interface RemoteDelta {
  sessionId: string
  turnId: string
  seq: number
  delta: string
}

export interface RelayDeltasDeps {
  remote: Pick<RemoteRunStore, 'get'>
  sessions: Pick<SessionStore, 'baseOf' | 'turn'>
  live: Live
  log: Log
}

/** How a turn is heard while its node speaks. */
interface Heard {
  nodeId: string
  epoch: number
  voice: TurnText
  /** The piece that comes next; what follows a gap is void until the text begins anew. */
  next: number
  /** Said since the text began. */
  characters: number
}

/** Twice the longest answer of a model: the text of an open turn is kept whole for late listeners, and its end brings it in any case. */
const MOST_CHARACTERS = 16 * 1024 * 1024

/**
 * The text of turns on nodes, for listeners of this process. Pieces are lost with a stream that breaks, so none is relied on: at the end
 * the text of the turn is read from its node, and the rest of it is emitted then.
 */
export function relayDeltas({ remote, sessions, live, log }: RelayDeltasDeps) {
  const turns = new Map<string, Heard>()
  let last: Promise<unknown> = Promise.resolve()

  async function heardOf(nodeId: string, sessionId: string, turnId: string): Promise<Heard | undefined> {
    const known = turns.get(turnId)
    if (known !== undefined) return known.nodeId === nodeId ? known : undefined
    const run = await remote.get(turnId)
    const base = await sessions.baseOf(turnId)
    const is = run?.nodeId === nodeId && run.sessionId === sessionId && run.finishedMs === undefined
    if (!is || base === undefined) return undefined
    const { epoch } = run
    const made = {
      nodeId,
      epoch,
      next: 1,
      characters: 0,
      voice: live.voice({ sessionId, runId: turnId, epoch }, base, true),
    }
    turns.set(turnId, made)
    return made
  }

  async function say(nodeId: string, { sessionId, turnId, seq, delta }: RemoteDelta): Promise<void> {
    const heard = await heardOf(nodeId, sessionId, turnId)
    if (heard === undefined) return
    if (seq === 1) {
      heard.voice.begin()
      heard.characters = 0
    }
    heard.characters += delta.length
    if ((seq !== 1 && seq !== heard.next) || heard.characters > MOST_CHARACTERS) {
      heard.next = Number.NaN
      return
    }
    heard.next = seq + 1
    heard.voice.delta(delta.toWellFormed())
  }

  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const mine = last.then(work).catch(error => log.error('what a node said was not told', { error }))
    last = mine
    return mine
  }

  return {
    /** A piece, in the order in which they come; resolves when its node may say the next. */
    said: (nodeId: string, piece: RemoteDelta): Promise<void> => inTurn(() => say(nodeId, piece)),

    /** The end of a turn is about to be committed: until it is emitted, no emitted text is void. */
    ending({ id, sessionId, epoch }: RemoteRun): void {
      if (sessionId !== undefined) live.endOf({ sessionId, runId: id, epoch })
    },

    /** It is committed: the rest of the text is emitted, and the end of the turn. */
    ended({ id: runId, sessionId, epoch }: RemoteRun): void {
      if (sessionId === undefined) return
      void inTurn(async () => {
        const heard = turns.get(runId)
        turns.delete(runId)
        const [end, base] = [await sessions.turn(runId).catch(() => undefined), await sessions.baseOf(runId)]
        if (end === undefined || base === undefined) return live.forget({ sessionId, runId, epoch })
        if (heard !== undefined && end.event === 'message_completed') {
          heard.voice.said({ text: end.data.text, toolCalls: [] })
          heard.voice.finish()
        }
        live.ended(sessionId, base + epoch * LIFE, end)
      })
    },

    idle: (): Promise<unknown> => last,
  }
}
