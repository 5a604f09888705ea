import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { router } from '../../shared/wire/router/endpoints.ts'
import { runtime } from '../../shared/wire/runtime/endpoints.ts'

type Groups = Readonly<Record<string, Readonly<Record<string, Endpoint>>>>

/** The module with the operations of both services, without the schemas: those would make a client of some hundred kilobytes. */
export function clientOperations(): string {
  const { audit, operations } = router
  return `// Written by scripts/generate.ts from the endpoint tables of shared/wire/.
${table('runtimeOperations', runtime)}
${table('routerOperations', { audit, operations })}`
}

function table(name: string, groups: Groups): string {
  const lines = Object.entries(groups).flatMap(([group, endpoints]) => [
    `  ${group}: {`,
    ...Object.entries(endpoints)
      .filter(([, { auth }]) => auth !== 'cookie')
      .map(([operation, endpoint]) => `    ${operation}: '${written(endpoint)}',`),
    '  },',
  ])
  return `export const ${name} = {\n${lines.join('\n')}\n}\n`
}

function written({ method, path, responses, idempotent }: Endpoint): string {
  const { contentType = 'application/json', headers = {}, asText } = responses[200] ?? {}
  const kind =
    contentType === 'text/event-stream'
      ? 'stream'
      : contentType !== 'application/json' || responses[302]
        ? 'text'
        : idempotent
          ? 'keyed'
          : 'Link' in headers
            ? 'list'
            : asText === 'application/x-ndjson'
              ? 'lines'
              : ''
  return [method, path, kind].join(' ').trimEnd()
}
