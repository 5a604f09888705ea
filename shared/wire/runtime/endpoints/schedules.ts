import { z } from 'zod'
import { created, listOf, noContent, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { emptyBody, idParams, pageQuery } from '../conventions.ts'
import { budgetRefusal } from '../error.ts'
import { run } from '../run.ts'
import {
  fire,
  previewItem,
  previewQuery,
  schedule,
  scheduleCreate,
  scheduleListQuery,
  scheduleUpdate,
} from '../schedule.ts'
import { BODY, BODY_OF_ONE, LIST, ONE } from './errors.ts'

const write = { tag: 'Schedules', auth: 'bearer', scopes: ['schedules:write'] } as const
const read = { method: 'GET', tag: 'Schedules', auth: 'bearer', scopes: ['schedules:read'] } as const

export const scheduleEndpoints = {
  create: endpoint({
    id: 'createSchedule',
    method: 'POST',
    path: '/v1/schedules',
    summary: 'Create a schedule',
    ...write,
    body: scheduleCreate,
    responses: created(schedule),
    idempotent: true,
    errors: [...BODY, 404, 409],
  }),
  list: endpoint({
    id: 'listSchedules',
    path: '/v1/schedules',
    summary: 'List schedules',
    ...read,
    query: scheduleListQuery,
    responses: listOf(z.array(schedule)),
    errors: LIST,
  }),
  preview: endpoint({
    id: 'previewSchedule',
    path: '/v1/schedules/preview',
    summary: 'When an expression would fire',
    ...read,
    query: previewQuery,
    responses: ok(z.array(previewItem), 'Earliest first.'),
    errors: LIST,
  }),
  get: endpoint({
    id: 'getSchedule',
    path: '/v1/schedules/{id}',
    summary: 'Read a schedule',
    ...read,
    params: idParams,
    responses: ok(schedule),
    errors: ONE,
  }),
  update: endpoint({
    id: 'updateSchedule',
    method: 'PUT',
    path: '/v1/schedules/{id}',
    summary: 'Change a schedule; fields left out stay',
    ...write,
    params: idParams,
    body: scheduleUpdate,
    responses: ok(schedule),
    errors: BODY_OF_ONE,
  }),
  remove: endpoint({
    id: 'deleteSchedule',
    method: 'DELETE',
    path: '/v1/schedules/{id}',
    summary: 'Delete a schedule; runs that it started go on',
    ...write,
    params: idParams,
    responses: noContent,
    errors: ONE,
  }),
  pause: endpoint({
    id: 'pauseSchedule',
    method: 'POST',
    path: '/v1/schedules/{id}/pause',
    summary: 'Pause a schedule',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: ok(schedule),
    errors: BODY_OF_ONE,
  }),
  resume: endpoint({
    id: 'resumeSchedule',
    method: 'POST',
    path: '/v1/schedules/{id}/resume',
    summary: 'Resume a schedule; missed windows are not caught up',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: ok(schedule),
    errors: BODY_OF_ONE,
  }),
  run: endpoint({
    id: 'runSchedule',
    method: 'POST',
    path: '/v1/schedules/{id}/run',
    summary: 'Start a run now, outside any window',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: { ...created(run), 402: { description: 'A hard-fail budget would be broken.', schema: budgetRefusal } },
    errors: BODY_OF_ONE,
  }),
  fires: endpoint({
    id: 'listScheduleFires',
    path: '/v1/schedules/{id}/fires',
    summary: 'What the schedule did in its windows',
    ...read,
    params: idParams,
    query: pageQuery,
    responses: listOf(z.array(fire)),
    errors: ONE,
  }),
}
