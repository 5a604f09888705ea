/** What docs/settings.md says of a header. */
export interface HeaderWords {
  /** Who sends it, to whom. */
  from: string
  about: string
}
