/** What docs/settings.md says of a variable beside its schema. Written once, checked against the schema by a test. */
export interface VariableWords {
  /** What it does. */
  about: string
  /** What a value looks like. */
  form: string
  /** As one would write it: it must read as what the schema gives where nothing is set. */
  default?: string
  /** What holds where nothing is set and there is no value that says so. */
  unset?: string
  example?: string
}

/** Variables by what they are for, in the order of the page. */
export type VariableGroups<Name extends string> = Readonly<Record<string, { readonly [N in Name]?: VariableWords }>>
