/** Shows what the assistant sends while no page of it is open, and opens the page where it is pressed. */
addEventListener("push", (event) => {
  const { title, body } = event.data.json();
  event.waitUntil(registration.showNotification(title, { body }));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(clients.openWindow("/"));
});
