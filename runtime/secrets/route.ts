import { invalidMember } from '../../shared/http/api-error.ts'
import { settingsEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/settings.ts'
import type { SecretItem } from '../../shared/wire/runtime/provider.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound } from '../http/own-tenant.ts'
import { leftOut } from '../http/page.ts'
import type { SecretRow, SecretStore } from './store.ts'

export interface SecretsDeps {
  secrets: SecretStore
}

/** Names and bindings of secrets, never their values (docs/spec/runtime.md §10). */
export function secretOperations({ secrets }: SecretsDeps): Operation[] {
  return [
    operation(endpoints.secrets, async ({ principal, context }) => {
      return (await secrets.list(principal.tenantId, leftOut(context).damaged)).map(toItem)
    }),
    operation(endpoints.saveSecret, async ({ principal, params: { name }, body }) => {
      const stored = await secrets.put(principal.tenantId, name, body)
      if (stored === undefined) {
        const [path, message] = ['value', `there is no secret ${name} yet: send its value as well`]
        throw invalidMember(path, message)
      }
      return toItem(stored)
    }),
    operation(endpoints.removeSecret, async ({ principal, params: { name } }) => {
      if (!(await secrets.remove(principal.tenantId, name))) throw notFound('secret', name)
    }),
  ]
}

function toItem({ name, updatedMs, binding }: SecretRow): SecretItem {
  return { name, ...binding, updatedAt: new Date(updatedMs).toISOString() }
}
