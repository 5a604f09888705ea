import { html } from 'hono/html'
import { count, duration, money } from '../../../shared/browser/figures.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import type { Ask } from '../ask.ts'
import type { Html } from '../page.ts'
import { badge } from '../parts.ts'

/** A run below another one, with those below it. */
export interface RunBelow {
  run: Run
  below: RunBelow[]
}

/** Of a tree that is wide. */
const MOST_RUNS = 100
const PAGE = 50

/** The runs that a run has started, and theirs, oldest first; of very many a part. */
export async function runsBelow(ask: Ask, id: string, room = { left: MOST_RUNS }): Promise<RunBelow[]> {
  if (room.left <= 0) return []
  const path = `/v1/runs?parentRunId=${encodeURIComponent(id)}&fields=summary&limit=${PAGE}`
  const runs = (await ask.get<Run[]>(path)).toReversed().slice(0, room.left)
  room.left -= runs.length
  const found: RunBelow[] = []
  for (const run of runs) found.push({ run, below: await runsBelow(ask, run.id, room) })
  return found
}

/** As a tree, each with what it and those below it have cost. */
export function childRuns(root: string, children: readonly RunBelow[]): Html | string {
  if (children.length === 0) return ''
  return html`<section class="card" aria-labelledby="children-title"><h2 id="children-title">Sub-runs</h2>${tree(root, children)}</section>`
}

function tree(root: string, children: readonly RunBelow[]): Html {
  return html`<ul class="tree">${children.map(
    ({ run, below }) =>
      html`<li><a href="${root}runs/${run.id}">${run.agentName}</a> ${badge(run.status)} <small>${figures(run)}</small>${below.length === 0 ? '' : tree(root, below)}</li>`,
  )}</ul>`
}

function figures({ startedAt, finishedAt, tokensIn, tokensOut, costUsd, treeCostUsd = costUsd }: Run): string {
  return [
    ...(startedAt !== undefined && finishedAt !== undefined
      ? [duration(Date.parse(finishedAt) - Date.parse(startedAt))]
      : []),
    `${count(tokensIn)} → ${count(tokensOut)} tokens`,
    treeCostUsd > costUsd ? `${money(treeCostUsd)} with its sub-runs` : money(costUsd),
  ].join(' · ')
}
