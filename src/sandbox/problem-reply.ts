/**
 * The error bodies of the simulated API: problem+json (RFC 9457), marked as simulated. The real API's are unknown.
 */
import { STATUS_CODES } from '../platform/http.ts';
import type { OutgoingHttpHeaders } from 'node:http';
import { jsonReply } from './loopback-server.ts';
import type { Reply } from './loopback-server.ts';

/**
 * A problem answer; its title is the status in words.
 * @param members further members of the body
 * @param fields further header fields
 */
export function problemReply(
  status: number,
  detail: string,
  members: object = {},
  fields: OutgoingHttpHeaders = {},
): Reply {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, ...members, simulated: true };
  return jsonReply(status, problem, { 'content-type': 'application/problem+json', ...fields });
}
