let title = "Everstep";
let waiting = 0;

const show = (): void => {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title}`;
};

/** Sets the title of the browser tab. */
export function setPageTitle(page: string): void {
  title = `${page} · Everstep`;
  show();
}

/** How many sessions need somebody; shown before the title. */
export function setTitleBadge(count: number): void {
  waiting = count;
  show();
}
