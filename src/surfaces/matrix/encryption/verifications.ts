import type * as CryptoLibrary from "@matrix-org/matrix-sdk-crypto-wasm";
import type { Logger } from "pino";
import type { CryptoMachine } from "./crypto-machine.ts";

type Step = {
  requests: CryptoLibrary.ToDeviceRequest[];
  /** The emoji to compare, and the room of the verification if it has one. */
  emoji: { room_id: string | null; text: string } | null;
};

export type VerificationsOptions = {
  machine: CryptoMachine;
  log: Logger;
  signal: AbortSignal;
  /** Shows a person the emoji that their client should show as well. */
  show: (user_id: string, room_id: string | null, emoji: string) => void;
};

/**
 * Takes part in emoji verifications that allowed people start. The bot cannot compare: it shows its emoji and confirms; whether
 * they match is for the person to decide.
 */
export class Verifications {
  readonly #options: VerificationsOptions;

  constructor(options: VerificationsOptions) {
    this.#options = options;
  }

  /** Takes the steps that are possible now in a person's verifications. */
  async proceed(user_id: string): Promise<void> {
    const { machine, signal, show, log } = this.#options;
    try {
      const steps = await machine.use((olm, library) => stepsFor(olm, library, user_id));
      for (const { requests, emoji } of steps) {
        if (emoji) show(user_id, emoji.room_id, emoji.text);
        for (const request of requests) await machine.send(request, signal);
      }
      if (steps.length > 0) await machine.sendRequests(signal);
    } catch (error) {
      log.warn({ err: error, user_id }, "a verification could not go on");
    }
  }
}

async function stepsFor(
  olm: CryptoLibrary.OlmMachine,
  { UserId, Sas, VerificationMethod, VerificationRequestPhase }: typeof CryptoLibrary,
  user_id: string,
): Promise<Step[]> {
  const steps: Step[] = [];
  for (const request of olm.getVerificationRequests(new UserId(user_id))) {
    if (request.isCancelled() || request.isDone()) continue;
    if (request.phase() === VerificationRequestPhase.Requested && !request.weStarted()) {
      const accepted = request.acceptWithMethods([VerificationMethod.SasV1]);
      if (accepted) steps.push(stepOf([accepted]));
    }
    const sas = request.getVerification();
    if (!(sas instanceof Sas)) continue;
    const accepted = sas.weStarted() || sas.hasBeenAccepted() ? undefined : sas.accept();
    if (accepted) steps.push(stepOf([accepted]));
    if (sas.canBePresented() && !sas.haveWeConfirmed()) {
      const text = (sas.emoji() ?? []).map(({ symbol, description }) => `${symbol} ${description}`).join(", ");
      const room_id = request.roomId?.toString() ?? null;
      steps.push({ requests: (await sas.confirm()).map(asRequest), emoji: { room_id, text } });
    }
  }
  return steps;
}

const asRequest = (request: unknown): CryptoLibrary.ToDeviceRequest => request as CryptoLibrary.ToDeviceRequest;
const stepOf = (requests: unknown[]): Step => ({ requests: requests.map(asRequest), emoji: null });
