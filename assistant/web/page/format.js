/** Times, numbers and amounts as the reader's browser writes them; times in the reader's zone. */

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const short = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const long = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

const sameDay = (a, b) => a.toDateString() === b.toDateString();

/** 09:30 today, "3 May 09:30" this year, else with the year. */
export function when(iso) {
  if (!iso) return "";
  const at = new Date(iso);
  const now = new Date();
  if (sameDay(at, now)) return clock.format(at);
  return `${(at.getFullYear() === now.getFullYear() ? short : long).format(at)} ${clock.format(at)}`;
}

/** "09:30" of the home's clock, as the reader's browser writes a time; a day as it is. */
export const clockTime = (time) => (time[5] ? time : clock.format(new Date(`2000-01-01T${time}`)));

/** The day alone. */
export function day(iso) {
  if (!iso) return "";
  return long.format(new Date(iso));
}

/** "Friday, 5 June" of "2026-06-05". */
export const dayName = (date) => weekday.format(new Date(`${date}T12:00:00`));

const dates = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long" });
const month = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });
const shortWeekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });

/** "June 2026", and "Fri", of "2026-06-05"; "1 – 7 June" of the days of a week. */
export const monthName = (date) => month.format(new Date(`${date}T12:00:00`));
export const weekName = (days) => dates.formatRange(...[days[0], days[6]].map((date) => new Date(`${date}T12:00:00`)));
export const weekdayName = (date) => shortWeekday.format(new Date(`${date}T12:00:00`));

/** "2026-06-05" of a Date in the reader's zone. */
export const isoDay = (at) =>
  `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;

export const number = (value) => (value == null ? "" : whole.format(value));

/** US dollars; small amounts with two digits that say something. */
export function dollars(value) {
  if (value == null) return "no price";
  if (value > 0 && value < 0.0001) return "<$0.0001";
  return value > 0 && value < 0.1 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
  return `${at ? value.toFixed(1) : value} ${units[at]}`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
