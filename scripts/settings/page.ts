import { nodeExits } from '../../node-agent/cli/exit-words.ts'
import { moreNodeWords, nodeWords } from '../../node-agent/env-words.ts'
import { routerExits } from '../../router/cli/exit-words.ts'
import { moreRouterWords, routerWords } from '../../router/env-words.ts'
import { runtimeExits } from '../../runtime/cli/exit-words.ts'
import { moreRuntimeWords, runtimeWords } from '../../runtime/env-words.ts'
import { runtimeHeaders } from '../../runtime/header-words.ts'
import { type ExitWords, everyExit, type ProgramExits } from '../../shared/cli/exit-code.ts'
import { networkWords } from '../../shared/env/network-words.ts'
import type { VariableGroups } from '../../shared/env/variable-words.ts'
import type { HeaderWords } from '../../shared/wire/header-words.ts'
import { moreRouterHeaders, requestHeaderWords, responseHeaderWords } from '../../shared/wire/router/header-words.ts'
import { requestHeaders, responseHeaders } from '../../shared/wire/router/headers.ts'
import { configTables } from './config-tables.ts'

const INTRO = `# Settings

Every setting of the three programs. This page is written by \`npx node scripts/settings.ts\` from the schemas that the programs read
with, and the words beside them; a test holds it.

- [Runtime: variables](#runtime-variables)
- [Router: variables](#router-variables)
- [Router: config](#router-config)
- [Node: variables](#node-variables)
- [Headers](#headers)
- [Exit codes](#exit-codes)

A variable that is empty counts as not set. A value that does not read stops the start with the name and what was expected; a secret is
never repeated. A variable that begins with \`PLATFORM_\` or \`ROUTER_\` and that nothing reads is named in the log. Variables are read at the
start: to change one, restart. \`runtime doctor\` and \`router doctor\` say what a start would make of them.

A **duration** is a number and \`ms\`, \`s\`, \`m\` or \`h\`, such as \`500ms\` or \`5m\`; without a unit it is seconds. A **comma list** may have spaces
around its commas. A default in \`code\` is the value as one would write it; without, it says what holds instead.
`

const CONFIG = `## Router: config

TOML, named in \`ROUTER_CONFIG\` or \`--config\`. \`version\` may stand at the top; it is 1. A key that is not on this page is a mistake, and
\`router serve\` lists every mistake of a file at once, with its line. SIGHUP reads the file again; one with a mistake changes nothing.
Keys and tokens have no place in it: it names the variables that hold them. [budgets.md](budgets.md) and
[guides/route-and-prove.md](guides/route-and-prove.md) show it in use.
`

export function settingsPage(): string {
  const parts = [
    INTRO,
    '## Runtime: variables\n',
    variables('runtime', runtimeWords, moreRuntimeWords, networkWords),
    'Its embedded node reads the variables of [sandboxes](#node-sandboxes) as well.\n',
    '## Router: variables\n',
    variables('router', routerWords, moreRouterWords, networkWords),
    CONFIG,
    ...configTables().flatMap(({ title, about, keys }) => [
      `### ${/^\[|^kind/.test(title) ? `\`${title}\`` : title}\n`,
      ...(about === '' ? [] : [`${about}\n`]),
      ...(keys.length === 0
        ? []
        : [
            rows(
              ['key', 'what it does', 'value', 'default'],
              keys.map(one => [`\`${one.key}\``, one.about, one.form, one.unset]),
            ),
          ]),
    ]),
    '## Node: variables\n',
    variables('node', nodeWords, moreNodeWords, networkWords),
    'Providers are set as on the runtime, by `PLATFORM_PROVIDER_<ID>_API_KEY` and `PLATFORM_PROVIDER_<ID>_BASE_URL`.\n',
    '## Headers\n',
    '### Router\n',
    headers({ ...named(requestHeaders, requestHeaderWords), ...moreRouterHeaders }),
    `Answers carry these, unless \`ROUTER_RESPONSE_HEADERS=0\`:\n`,
    headers(named(responseHeaders, responseHeaderWords)),
    '### Runtime\n',
    headers(runtimeHeaders),
    '## Exit codes\n',
    `${Object.entries(everyExit)
      .map(([code, means]) => `- ${code}: ${means}\n`)
      .join('')}\nThey mean the same for every command of the three programs. What they mean beyond that:\n`,
    exits('router', routerExits),
    exits('runtime', runtimeExits),
    exits('node-agent', nodeExits),
  ]
  return `${parts.join('\n').trimEnd()}\n`
}

function variables(program: string, ...groups: readonly VariableGroups<string>[]): string {
  return groups
    .flatMap(one => Object.entries(one))
    .map(([title, words]) => {
      const lines = Object.entries(words).flatMap(([name, said]) => {
        if (said === undefined) return []
        const example = said.example === undefined ? '' : `, such as \`${said.example}\``
        const value = said.default === undefined ? said.unset : `\`${said.default}\``
        if (value === undefined) throw new Error(`${name}: say what holds where it is not set`)
        return [[`\`${name}\``, said.about, said.form + example, value]]
      })
      return `### ${program}: ${title[0]!.toLowerCase()}${title.slice(1)}\n\n${rows(['variable', 'what it does', 'value', 'default'], lines)}`
    })
    .join('\n')
}

/** Headers by their names on the wire instead of the names in the code. */
function named<K extends string>(names: Record<K, string>, words: Record<K, HeaderWords>): Record<string, HeaderWords> {
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [name, words[key as K]]))
}

function headers(all: Readonly<Record<string, HeaderWords>>): string {
  return rows(
    ['header', 'from', 'meaning'],
    Object.entries(all).map(([name, { from, about }]) => [`\`${name}\``, from, about]),
  )
}

function exits(program: string, commands: ProgramExits): string {
  const said = (words: ExitWords) =>
    Object.entries(words)
      .map(([code, means]) => `${code}: ${means}.`)
      .join(' ')
  const lines = Object.entries(commands).map(([command, words]) => [`\`${command}\``, said(words)])
  return `### ${program}: exit codes\n\n${rows(['command', 'what its codes mean there'], lines)}`
}

function rows(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return [line(head), `|${'---|'.repeat(head.length)}\n`, ...lines.map(line)].join('')
}
