/** Mutants of deletion, of what administrators hold up and webhooks are told, and of fleets: P34, P35, P37. */
import type { Check, Mutant } from '../mutant.ts';

const deletions: Check = { tests: 'services/scheduler/test/deletions.test.ts' };
const controls: Check = { tests: 'services/scheduler/test/controls.test.ts' };
const outbox: Check = { tests: 'services/scheduler/test/hook-announcer.test.ts' };
const fleet: Check = { tests: 'services/auth/test/fleet.test.ts' };
const offers: Check = { tests: 'services/scheduler/test/fleet-dispatch.test.ts' };
const ownRunners: Check = { tests: 'services/scheduler/test/tenant-runners.test.ts' };
const tenantWrites: Check = { tests: 'services/standalone/test/tenant-writes.test.ts' };

export const operating: readonly Mutant[] = [
  {
    rule: 'P34',
    breaks: 'deletes a run that another one still takes over from',
    file: 'services/scheduler/src/partition/deletions.ts',
    find: "if (isTakenFrom(id)) return refusal(epoch, 'CONFLICT', 'a run that repeats it still takes over from it');",
    replace: '',
    noticedBy: [deletions],
  },
  {
    rule: 'P34',
    breaks: 'answers that a run is deleted before its tombstone stands',
    file: 'services/scheduler/src/partition/deletions.ts',
    find: 'deleting.sequence > sequence || this.#dirty.has(deleting)) continue;',
    replace: 'deleting.sequence > sequence) continue;',
    noticedBy: [deletions],
  },
  {
    rule: 'P34',
    breaks: 'deletes a run twice, by what the store has said before its tombstone stood',
    file: 'services/scheduler/src/partition/deletions.ts',
    find: 'else if (standing === null || this.#gone.has(runId) || !tenants.includes(standing.tenant)) {',
    replace: 'else if (standing === null || !tenants.includes(standing.tenant)) {',
    noticedBy: [deletions],
  },
  {
    rule: 'P34',
    breaks: 'lets age delete a run twice, by a page that was read before its tombstone stood',
    file: 'services/scheduler/src/partition/deletions.ts',
    find: 'if (!isHere && !this.#gone.has(id) && this.#decide(id, standing) === undefined) decided += 1;',
    replace: 'if (!isHere && this.#decide(id, standing) === undefined) decided += 1;',
    noticedBy: [deletions],
  },
  {
    rule: 'P34',
    breaks: 'says of a deleted run that it is there',
    file: 'libs/store/src/deleted-runs.ts',
    find: 'return row === null || isTombstone(row) ? null : { tenant',
    replace: 'return row === null ? null : { tenant',
    noticedBy: [{ tests: 'libs/store/test/deleted-runs.test.ts' }],
  },
  {
    rule: 'P35',
    breaks: 'grants before it knows what is paused',
    file: 'services/scheduler/src/controls/controls.ts',
    find: 'return this.#isRead && this.#time.bootNow() - heardAt < CONTROLS_HEARD_WITHIN_MS;',
    replace: 'return this.#time.bootNow() - heardAt < CONTROLS_HEARD_WITHIN_MS;',
    noticedBy: [controls],
  },
  {
    rule: 'P35',
    breaks: 'grants though nothing has been heard of what is paused for long',
    file: 'services/scheduler/src/controls/controls.ts',
    find: 'return this.#isRead && this.#time.bootNow() - heardAt < CONTROLS_HEARD_WITHIN_MS;',
    replace: 'return this.#isRead && Number.isFinite(heardAt);',
    noticedBy: [controls],
  },
  {
    rule: 'P35',
    breaks: 'gives a drained runner what is bound to no workspace of it',
    file: 'services/scheduler/src/controls/controls.ts',
    find: 'return this.#runners.size > 0 && this.#runners.has(runner);',
    replace: 'return this.#runners.size > 0 && runner === undefined;',
    noticedBy: [controls],
  },
  {
    rule: 'P35',
    breaks: 'counts as announced what the store did not take',
    file: 'services/scheduler/src/shell/hook-announcer.ts',
    find: 'if (captured.length > 0) await this.#add(captured);',
    replace: 'if (captured.length > 0) await this.#add(captured).catch(() => {});',
    noticedBy: [outbox],
  },
  {
    rule: 'P35',
    breaks: 'announces nothing of what stands behind the document of a run that it takes over',
    file: 'services/scheduler/src/run/live-run.ts',
    find: 'this.announcedVersion = beginning.versionInDocument;',
    replace: 'this.announcedVersion = beginning.events.length;',
    noticedBy: [outbox],
  },
  {
    rule: 'P37',
    breaks: 'lets a runner in before it stands what it may be granted',
    file: 'services/auth/src/flows/fleet.ts',
    find: 'await grantFor(isIn ? forMs : Math.min(forMs, ADMITTING_MS));',
    replace: '',
    noticedBy: [fleet],
  },
  {
    rule: 'P37',
    breaks: 'leaves a runner in whose token was revoked as it came',
    file: 'services/auth/src/flows/fleet.ts',
    find: 'if (!(await tokens.livingAmong([found.id])).has(found.id) || (await this.#isShut(found))) {',
    replace: 'if (id === undefined) {',
    noticedBy: [fleet],
  },
  {
    rule: 'P37',
    breaks: 'grants to a runner of the fleet that has no entry',
    file: 'services/scheduler/src/dispatch/fleet-entries.ts',
    find: 'return entry === undefined ? null : allowedLabels(entry, labels);',
    replace: 'return entry === undefined ? labels : allowedLabels(entry, labels);',
    noticedBy: [offers],
  },
  {
    rule: 'P37',
    breaks: "gives a tenant's runner what other tenants have waiting",
    file: 'services/scheduler/src/dispatch/own-lanes.ts',
    find: 'if (lane.tenant === tenant) own.lanes.set(lane, ready);',
    replace: 'own.lanes.set(lane, ready);',
    noticedBy: [ownRunners],
  },
  {
    rule: 'P37',
    breaks: "gives a tenant's runner another tenant's run that it names",
    file: 'services/scheduler/src/dispatch/dispatch.ts',
    find: ' || !isFor(session, stages);',
    replace: ';',
    noticedBy: [ownRunners],
  },
  {
    rule: 'P37',
    breaks: 'stores a chunk of an attempt that does not live with its runner',
    file: 'services/standalone/src/api/tenant-writes.ts',
    find: 'if (tenant === null || ',
    replace: 'if (',
    noticedBy: [tenantWrites],
  },
  {
    rule: 'P37',
    breaks: "lets the lease of a tenant's runner stay for ever",
    file: 'services/standalone/src/api/runner-leases.ts',
    find: 'if (!(ttlMs >= TTL_MS.min && ttlMs <= TTL_MS.max)) return false;',
    replace: '',
    noticedBy: [tenantWrites],
  },
  {
    rule: 'P37',
    breaks: 'gives stages without trust to a runner whose token does not allow them',
    file: 'libs/bus/src/contract/fleet.ts',
    find: "if (label.startsWith('takes=untrusted')) return entry.untrusted;",
    replace: "if (label.startsWith('takes=untrusted')) return true;",
    noticedBy: [offers],
  },
];
