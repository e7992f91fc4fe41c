/** The memory of other processes, as Linux reports it. */
import { readFileSync } from 'node:fs';

/** Resident memory now (VmRSS) or at its highest so far (VmHWM), bytes. @throws Error when there is no such process */
export function processMemory(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kibibytes] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (kibibytes === undefined) throw new Error(`the kernel reports no ${field} of process ${pid}`);
  return Number(kibibytes) * 1024;
}
