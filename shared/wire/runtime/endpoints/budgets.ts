import { z } from 'zod'
import { listOf, noContent, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { budget, budgetPut, budgetSaved } from '../budget.ts'
import { nameParams, pageQuery } from '../conventions.ts'
import { usageItem, usageQuery } from '../usage.ts'
import { BODY_OF_ONE, LIST, ONE } from './errors.ts'

const read = { method: 'GET', tag: 'Budgets', auth: 'bearer', scopes: ['budgets:read'] } as const

export const budgetEndpoints = {
  save: endpoint({
    id: 'saveBudget',
    method: 'PUT',
    path: '/v1/agents/{name}/budget',
    tag: 'Budgets',
    summary: "Replace an agent's budget",
    auth: 'bearer',
    scopes: ['budgets:write'],
    params: nameParams,
    body: budgetPut,
    responses: ok(budgetSaved),
    errors: BODY_OF_ONE,
  }),
  get: endpoint({
    id: 'getBudget',
    path: '/v1/agents/{name}/budget',
    summary: "Read an agent's budget and today's use",
    ...read,
    params: nameParams,
    responses: ok(budget),
    errors: ONE,
  }),
  remove: endpoint({
    id: 'deleteBudget',
    method: 'DELETE',
    path: '/v1/agents/{name}/budget',
    tag: 'Budgets',
    summary: "Remove an agent's budget",
    auth: 'bearer',
    scopes: ['budgets:write'],
    params: nameParams,
    responses: noContent,
    errors: ONE,
  }),
  list: endpoint({
    id: 'listBudgets',
    path: '/v1/budgets',
    summary: 'List budgets',
    ...read,
    query: pageQuery,
    responses: listOf(z.array(budget)),
    errors: LIST,
  }),
  usage: endpoint({
    id: 'getUsage',
    path: '/v1/usage',
    summary: 'Usage by day, agent or model',
    ...read,
    query: usageQuery,
    responses: ok(z.array(usageItem)),
    errors: LIST,
  }),
}
