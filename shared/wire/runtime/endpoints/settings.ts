import { z } from 'zod'
import { noContent, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { nameParams } from '../conventions.ts'
import {
  modelSettings,
  providerItem,
  providerParams,
  providerSave,
  providerSaved,
  providerTest,
  providerTested,
  secretItem,
  secretParams,
  secretPut,
} from '../provider.ts'
import { BODY, BODY_OF_ONE, LIST, ONE } from './errors.ts'

const read = { method: 'GET', tag: 'Settings', auth: 'bearer', scopes: ['settings:read'] } as const
const write = { tag: 'Settings', auth: 'bearer', scopes: ['settings:write'] } as const

export const settingsEndpoints = {
  saveProvider: endpoint({
    id: 'saveProvider',
    method: 'POST',
    path: '/v1/settings/llm-providers',
    summary: 'Configure a model provider, or replace its key',
    ...write,
    body: providerSave,
    responses: ok(providerSaved),
    errors: BODY,
  }),
  providers: endpoint({
    id: 'listProviders',
    path: '/v1/settings/llm-providers',
    summary: 'List configured model providers',
    ...read,
    responses: ok(z.array(providerItem)),
    errors: LIST,
  }),
  testProvider: endpoint({
    id: 'testProvider',
    method: 'POST',
    path: '/v1/settings/llm-providers/{provider}/test',
    summary: 'Make one call to the provider',
    ...write,
    params: providerParams,
    body: providerTest,
    responses: ok(providerTested),
    errors: BODY_OF_ONE,
  }),
  removeProvider: endpoint({
    id: 'deleteProvider',
    method: 'DELETE',
    path: '/v1/settings/llm-providers/{provider}',
    summary: 'Forget a model provider',
    ...write,
    params: providerParams,
    responses: noContent,
    errors: ONE,
  }),
  models: endpoint({
    id: 'getModelSettings',
    path: '/v1/settings/models',
    summary: 'Model aliases and prices',
    ...read,
    responses: ok(modelSettings),
    errors: LIST,
  }),
  saveModels: endpoint({
    id: 'saveModelSettings',
    method: 'PUT',
    path: '/v1/settings/models',
    summary: 'Replace model aliases and prices',
    ...write,
    body: modelSettings,
    responses: ok(modelSettings),
    errors: BODY,
  }),
  secrets: endpoint({
    id: 'listSecrets',
    path: '/v1/secrets',
    summary: 'Names of the secrets, with the hosts and tools that each is bound to; values are never returned',
    ...read,
    responses: ok(z.array(secretItem)),
    errors: LIST,
  }),
  saveSecret: endpoint({
    id: 'saveSecret',
    method: 'PUT',
    path: '/v1/secrets/{name}',
    summary: 'Store a secret, or bind it to hosts and tools; what is left out stays as it is',
    ...write,
    params: secretParams,
    body: secretPut,
    responses: ok(secretItem),
    errors: BODY,
  }),
  removeSecret: endpoint({
    id: 'deleteSecret',
    method: 'DELETE',
    path: '/v1/secrets/{name}',
    summary: 'Delete a secret',
    ...write,
    params: nameParams,
    responses: noContent,
    errors: ONE,
  }),
}
