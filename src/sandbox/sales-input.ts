/** Validates the JSON bodies of the simulated API. The fields are invented, since the real payloads are unknown. */
import { isJsonObject, type JsonFields } from '../token/endpoint/json-object.ts';
import { problemResponse, RequestRejection } from './loopback-server.ts';

/** What is missing or wrong, by its path, such as `travellers[0].birthDate`. */
interface InputFault {
  readonly field: string;
  readonly message: string;
}

type InputCheck = (value: unknown, field: string) => readonly InputFault[];

export function createInputRejection(faults: readonly InputFault[]): RequestRejection {
  const detail = `Missing or wrong: ${faults.map(({ field }) => field).join(', ')}.`;
  return new RequestRejection(problemResponse(400, detail, { errors: faults }));
}

/** @throws RequestRejection with all faults, when there are any */
export function rejectFaults(faults: readonly InputFault[]): void {
  if (faults.length > 0) throw createInputRejection(faults);
}

export type QuoteRequest = ReturnType<typeof readQuoteRequest>;

export type PolicyRequest = ReturnType<typeof readPolicyRequest>;

const TRAVELLERS_MAX = 9;
const TEXT_MAX = 200;
const DAY_MS = 86_400_000;
const REFUSED_CHARACTERS = /[<>\p{Cc}\p{Cs}]/u;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

const checkText = createCheck(
  (value) => value.trim() !== '' && value.length <= TEXT_MAX && !REFUSED_CHARACTERS.test(value),
  `must be a text of 1 to ${TEXT_MAX.toString()} characters, none of which is <, > or a control character`,
);
const checkDate = createCheck((value) => !Number.isNaN(readDate(value)), 'must be a date, YYYY-MM-DD');
export const checkRecordId = createCheck((value) => UUID.test(value), 'must be an id of this API, a UUID');
const checkTraveller = createObjectCheck({ birthDate: checkDate });
const checkQuote = createObjectCheck({
  destination: checkText,
  startDate: checkDate,
  endDate: checkDate,
  travellers: checkTravellers,
});
const checkPolicy = createObjectCheck({
  quoteRequestId: checkRecordId,
  policyholder: createObjectCheck({ name: checkText, email: checkText }),
});

/** @throws RequestRejection */
export function readQuoteRequest(input: JsonFields) {
  rejectFaults(checkQuote(input, ''));
  const { startDate, endDate, travellers } = input as { startDate: string; endDate: string; travellers: unknown[] };
  // Insured days, including the first and the last.
  const days = Math.round((readDate(endDate) - readDate(startDate)) / DAY_MS) + 1;
  if (days < 1) rejectFaults([{ field: 'endDate', message: 'must not be before startDate' }]);
  return { days, travellers: travellers.length };
}

/** @throws RequestRejection */
export function readPolicyRequest(input: JsonFields) {
  rejectFaults(checkPolicy(input, ''));
  return input as { readonly quoteRequestId: string };
}

function createCheck(isValid: (value: string) => boolean, message: string): InputCheck {
  return (value, field) => (typeof value === 'string' && isValid(value) ? [] : [{ field, message }]);
}

function createObjectCheck(members: Readonly<Record<string, InputCheck>>): InputCheck {
  const names = Object.keys(members);
  return (value, field) => {
    if (!isJsonObject(value)) return [{ field, message: `must be an object with ${names.join(' and ')}` }];
    const pathOf = (name: string): string => (field === '' ? name : `${field}.${name}`);
    const unknown = Object.keys(value).filter((name) => !names.includes(name));
    return [
      ...Object.entries(members).flatMap(([name, check]) => check(value[name], pathOf(name))),
      ...unknown.map((name) => ({ field: pathOf(name.slice(0, TEXT_MAX)), message: 'is not known' })),
    ];
  };
}

function checkTravellers(value: unknown, field: string): readonly InputFault[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > TRAVELLERS_MAX)
    return [{ field, message: `must be an array of 1 to ${TRAVELLERS_MAX.toString()} travellers` }];
  return value.flatMap((traveller, index) => checkTraveller(traveller, `${field}[${index.toString()}]`));
}

/** Epoch milliseconds of a calendar day; NaN for any other text. */
function readDate(value: string): number {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(`${value}T00:00:00Z`) : NaN;
  // Date.parse reads some impossible days, such as 30 February, as a day of the next month.
  return !Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === value ? at : NaN;
}
