import { storableText } from '../../../shared/sql/sql-values.ts'

/** One person, one address: mail domains ignore case, and no provider of note tells local parts apart by it. */
export function emailKey(email: string): string {
  return storableText(email.trim().normalize('NFC').toLowerCase())
}
