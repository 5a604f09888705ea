import { z } from 'zod'
import type { Words } from '../config/key-words.ts'
import type { Path } from '../config/locate.ts'
import type { Model } from '../config/model.ts'
import type { Problems } from '../config/problem.ts'
import { type Read, readTable } from '../config/read-table.ts'
import { commonKeys, type GateBase } from './common-keys.ts'
import type { PrefixRule } from './early-release.ts'
import type { GateJudge, GateRun } from './gate.ts'
import type { GateHost } from './gate-host.ts'

/** What a kind may ask, and report, while a gate of the config is resolved. */
export interface GateContext {
  readonly host: {
    readonly hasProcesses: boolean
    /** Reads a schema file, named as in the config. */
    readonly readFile: ((path: string) => string) | undefined
    /** Names of the functions handed to the library. */
    readonly functions: ReadonlySet<string>
  }
  /** Keys that were wrong and have been reported. */
  readonly bad: ReadonlySet<string>
  /** Where a key of this gate is written. */
  at(...path: Path): Path
  /** Reports what is wrong with a value of this gate. */
  report(path: Path, message: string): void
  readonly problems: Problems
  /** The model that a key names; `unpriced` ends the sentence when it has no price. */
  model(key: string, ref: string, unpriced: string): Model | undefined
}

/** A gate that judges where it stands, one that takes its time, or why this host cannot have it. */
export type BuiltGate = { readonly judge: GateJudge } | { readonly run: GateRun } | GateRefusal

export interface GateRefusal {
  readonly code: 'host' | 'missing_variable' | 'unknown_function'
  /** A sentence that says what to do. */
  readonly message: string
}

type Keys = z.core.$ZodLooseShape

const tableOf = <const K extends string, S extends Keys>(kind: K, keys: S) =>
  z.strictObject({ ...commonKeys, kind: z.literal(kind), ...keys })

type TableOf<K extends string, S extends Keys> = z.output<ReturnType<typeof tableOf<K, S>>>
type ConfigOf<K extends string, R> = GateBase & { readonly kind: K } & Readonly<R>

/** Everything that the router knows of one kind of gate. */
interface Declaration<K extends string, S extends Keys, R> {
  readonly kind: K
  /** What docs/settings.md says of it. */
  readonly about: string
  /** The keys of its table beside the common ones, and a sentence for each. */
  readonly keys: S
  readonly words: Words<S>
  /** It is there without a table of its own. */
  readonly builtIn?: boolean
  /** It leaves the process or runs foreign code: it has more time, and nothing waits for it that need not. */
  readonly slow?: boolean
  /** It may give scores between 0 and 1, so that a threshold can tell answers apart. */
  readonly scores?: boolean
  /** Its runs are bills of a provider. */
  readonly callsModels?: boolean
  /** What its keys mean together. Reports what is wrong; undefined where nothing is left to go on with. */
  readonly resolve: (table: TableOf<K, S>, context: GateContext) => R | undefined
  readonly build: (config: ConfigOf<K, R>, host: GateHost) => BuiltGate
  /** Where the beginning of an answer can be enough for the verdict (docs/spec/router.md §4.1). */
  readonly onPrefix?: (config: ConfigOf<K, R>) => PrefixRule | undefined
  /** The models that it calls, by the members that hold them: their prices are part of the price table's hash. */
  readonly models?: (config: ConfigOf<K, R>) => NamedModels
  /** Why it has no place on a route with this ladder: the end of a sentence. */
  readonly refuseRoute?: (config: ConfigOf<K, R>, ladder: readonly Model[]) => string | undefined
}

type NamedModels = { readonly [member: string]: Model | null }

/** A kind as the list of kinds holds it: `Table` is what its table reads to, `Config` what that resolves to. */
export interface GateDefinition<K extends string, Table, Config> {
  readonly kind: K
  readonly about: string
  readonly words: Words<Keys>
  readonly builtIn: boolean
  readonly slow: boolean
  readonly scores: boolean
  readonly callsModels: boolean
  readonly schema: z.ZodObject
  readonly read: (problems: Problems, path: Path, given: unknown) => Read<Table> | undefined
  readonly resolve: (table: Table, base: GateBase, context: GateContext) => Config | undefined
  readonly build: (config: Config, host: GateHost) => BuiltGate
  readonly onPrefix: (config: Config) => PrefixRule | undefined
  readonly models: (config: Config) => NamedModels
  readonly refuseRoute: (config: Config, ladder: readonly Model[]) => string | undefined
}

/** Makes a kind of gate; `gate-kinds.ts` lists them. */
export function defineGate<const K extends string, S extends Keys, R extends object>(
  declared: Declaration<K, S, R>,
): GateDefinition<K, TableOf<K, S>, ConfigOf<K, R>> {
  const { kind, keys, resolve } = declared
  const schema = tableOf(kind, keys)
  return {
    kind,
    about: declared.about,
    words: declared.words,
    builtIn: declared.builtIn ?? false,
    slow: declared.slow ?? false,
    scores: declared.scores ?? false,
    callsModels: declared.callsModels ?? false,
    schema,
    read: (problems, path, given) => readTable(problems, path, schema, given),
    resolve(table, base, context) {
      const own = resolve(table, context)
      return own && { ...base, kind, ...own }
    },
    build: declared.build,
    onPrefix: declared.onPrefix ?? (() => undefined),
    models: declared.models ?? (() => ({})),
    refuseRoute: declared.refuseRoute ?? (() => undefined),
  }
}
