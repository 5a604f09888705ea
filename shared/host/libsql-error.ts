import { LibsqlError } from '@libsql/client/sqlite3'
import Database from 'libsql'

/** The names of the primary result codes (SQLite, "Result and Error Codes"); the driver gives the extended ones. */
const PRIMARY = new Map<number, string>([
  ...([
    [1, 'ERROR'],
    [2, 'INTERNAL'],
    [3, 'PERM'],
    [4, 'ABORT'],
    [5, 'BUSY'],
    [6, 'LOCKED'],
    [7, 'NOMEM'],
  ] as const),
  ...([
    [8, 'READONLY'],
    [9, 'INTERRUPT'],
    [10, 'IOERR'],
    [11, 'CORRUPT'],
    [12, 'NOTFOUND'],
    [13, 'FULL'],
  ] as const),
  ...([
    [14, 'CANTOPEN'],
    [15, 'PROTOCOL'],
    [17, 'SCHEMA'],
    [18, 'TOOBIG'],
    [19, 'CONSTRAINT'],
    [20, 'MISMATCH'],
  ] as const),
  ...([
    [21, 'MISUSE'],
    [22, 'NOLFS'],
    [23, 'AUTH'],
    [25, 'RANGE'],
    [26, 'NOTADB'],
  ] as const),
])

/** SQLITE_IOERR_SHMSIZE: there was no room for the 32 KiB of the index beside a log. */
const NO_ROOM_BESIDE = 4874

/** The error of the driver as the client package would tell it. */
export function toLibsqlError(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error
  const { message, code, rawCode } = error as Error & { code: string; rawCode?: number }
  const name = rawCode === undefined ? 'UNKNOWN' : (PRIMARY.get(rawCode & 0xff) ?? `UNKNOWN_${rawCode & 0xff}`)
  if (rawCode === NO_ROOM_BESIDE)
    return new LibsqlError('database or disk is full', 'SQLITE_FULL', code, rawCode, error as Error)
  return new LibsqlError(message, `SQLITE_${name}`, code, rawCode, error as Error)
}
