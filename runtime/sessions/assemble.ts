import type { Db } from '../../shared/sql/db.ts'
import type { Records } from '../vault/records.ts'
import { type Live, live } from './live-sessions.ts'
import type { Numbered } from './session-log.ts'
import { type SessionState, type SessionStore, sessionStore } from './store.ts'
import { turns } from './turns.ts'

export interface Sessions {
  store: SessionStore
  live: Live
  /** For the engine. */
  turns: ReturnType<typeof turns>
}

/** Sessions over one store. */
export function assembleSessions(
  db: Db,
  records: Records,
  heard?: (event: Numbered) => void,
  wanted?: (session: SessionState) => void,
): Sessions {
  const store = sessionStore(db, records)
  const told = live({ store, heard, wanted })
  return { store, live: told, turns: turns({ store, records, live: told }) }
}
