/**
 * `bearer-sidecar reload`: SIGHUP to the sidecar of an admin port, and the outcome. The process id comes from /status; it is used on
 * the same machine only, and after a check that this process has the admin port.
 */
import type { ListenAddress } from '../../platform/host-header.ts';
import type { LoadOptions } from '../../config/load/load.ts';
import { formatSettingName, toSingleLine } from '../../config/load/problems.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
import { sleep, systemClock } from '../../platform/clock.ts';
import { loadAdminAddress, parseStatus, readAdminText, type RunningStatus } from '../admin-port.ts';
import { failWith } from '../terminal.ts';
import { findSocketOwnership, isOnThisMachine } from './listening-process.ts';

const POLL_INTERVAL_MS = 50;
/** A reload takes milliseconds; files on a slow network volume take longer. */
const OUTCOME_TIMEOUT_MS = 15_000;

/** @returns 0 when the configuration was taken over, 1 when not, 2 for wrong settings or an admin port of another machine */
export async function reload(load: LoadOptions, stop: AbortSignal): Promise<number> {
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  // Windows has no signal that a process can handle.
  if (process.platform === 'win32') return failWith(1, 'reload needs SIGHUP, which Windows does not have; restart it');
  if (!(await isOnThisMachine(address)))
    return failWith(
      2,
      `${formatSettingName('admin.address')}: found ${formatAddress(address)}, which is not an address of this machine; run reload where the sidecar runs`,
    );
  const reading = await readAdminText(address, '/status', stop);
  if (reading.status === undefined) return failWith(1, reading.text);
  const before = parseStatus(reading.text) ?? {};
  const target = findTarget(before, address);
  if (typeof target === 'string') return failWith(1, target);
  const sent = sendSighup(target);
  if (sent !== undefined) return failWith(1, sent);
  return waitForOutcome(address, before, stop);
}

/** The id of the process, or why no signal may be sent. */
function findTarget({ pid, configuration }: RunningStatus, address: ListenAddress): number | string {
  if (configuration?.reloadable === false)
    return 'the sidecar has no configuration file: nothing can be reloaded; restart it with other settings';
  // Process 0 would be the whole group of this one, a negative number another group.
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1)
    return 'the sidecar does not state its process id: it is older; send SIGHUP to it yourself';
  const ownership = findSocketOwnership(pid, address);
  if (ownership === 'own') return pid;
  if (ownership === 'foreign')
    return `process ${pid}, which /status names, does not listen on ${formatAddress(address)} here: the sidecar runs in another container or behind a forwarded port; run reload there`;
  return `process ${pid} cannot be verified: ${ownership.unknown}; if it is the sidecar, send the signal yourself: kill -HUP ${pid}`;
}

/** The fault; undefined when it was sent. */
function sendSighup(pid: number): string | undefined {
  try {
    process.kill(pid, 'SIGHUP');
    return undefined;
  } catch (error) {
    const code = systemErrorCode(error);
    return `SIGHUP cannot be sent to process ${pid}${code === 'EPERM' ? ': it belongs to another user' : ` (${code})`}`;
  }
}

async function waitForOutcome(address: ListenAddress, before: RunningStatus, stop: AbortSignal): Promise<number> {
  const lastAt = before.configuration?.lastReload?.at;
  const endsAt = performance.now() + OUTCOME_TIMEOUT_MS;
  let why = `no outcome within ${OUTCOME_TIMEOUT_MS / 1000} s; see its log`;
  while (performance.now() < endsAt && !stop.aborted) {
    const reading = await readAdminText(address, '/status', stop);
    if (reading.status === undefined) why = reading.text;
    const last = parseStatus(reading.text)?.configuration?.lastReload;
    if (last !== undefined && last !== null && last.at !== lastAt) return reportOutcome(last);
    await sleep(systemClock, POLL_INTERVAL_MS, stop);
  }
  return failWith(1, stop.aborted ? 'stopped before the outcome was known' : why);
}

function reportOutcome({ outcome, detail }: { readonly outcome: string; readonly detail: string }): number {
  if (outcome === 'ok') {
    process.stdout.write(`reloaded: ${toSingleLine(detail)}\n`);
    return 0;
  }
  const reason = outcome === 'refused' ? 'a restart is needed for' : 'it is invalid';
  return failWith(1, `the configuration was not reloaded; ${reason}: ${detail}`);
}

function formatAddress(address: ListenAddress): string {
  return address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`;
}
