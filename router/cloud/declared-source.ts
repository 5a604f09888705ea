import type { Provider } from '../config/routing-config.ts'
import type { Vars } from './credential-request.ts'

/** An account that a variable holds is not searched for. */
export const isSearched = ({ auth, credentialsEnv }: Pick<Provider, 'auth' | 'credentialsEnv'>): boolean =>
  auth === 'sigv4' || auth === 'entra' || (auth === 'oauth' && credentialsEnv === null)

/** What the variables alone say of where the credentials of a cloud host come from. */
export function declaredSource(
  { auth, service, credentialsEnv }: Pick<Provider, 'auth' | 'service' | 'credentialsEnv'>,
  env: Vars,
): string | undefined {
  const firstSet = (...names: string[]) => names.find(name => (env[name] ?? '') !== '')
  const both = (one: string, other: string) => (firstSet(one) && firstSet(other) ? one : undefined)
  switch (auth) {
    case 'sigv4':
      return (
        (service === 'bedrock' ? firstSet('AWS_BEARER_TOKEN_BEDROCK') : undefined) ??
        both('AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY') ??
        firstSet('AWS_PROFILE') ??
        both('AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN') ??
        firstSet('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', 'AWS_CONTAINER_CREDENTIALS_FULL_URI')
      )
    case 'oauth':
      if (credentialsEnv !== null) return firstSet(credentialsEnv)
      return firstSet('GOOGLE_APPLICATION_CREDENTIALS', 'GCE_METADATA_HOST', 'GCE_METADATA_IP')
    case 'entra':
      return (
        (both('AZURE_TENANT_ID', 'AZURE_CLIENT_ID') && firstSet('AZURE_CLIENT_SECRET', 'AZURE_FEDERATED_TOKEN_FILE')) ??
        both('IDENTITY_ENDPOINT', 'IDENTITY_HEADER') ??
        firstSet('AZURE_POD_IDENTITY_AUTHORITY_HOST')
      )
    default:
      return undefined
  }
}
